from tests.course.hard_coded import hard_coded_figures

HARD_CODED = {
    "a literal, by keyword": ["verdict('R01', figure=0.3)"],
    "a comprehension": ["verdict('R01', [0.3 for seed in range(5)])"],
    "a tensor": ["verdict('R01', torch.tensor([0.3, 0.4, 0.5]).mean().item())"],
    "a dictionary": ["d = {'x': 0.3}", "verdict('R01', d['x'])"],
    "through a function": ["def f(x):\n    y = x + 1\n    return y", "verdict('R01', f(0.3))"],
    "overwritten": ["x = measure()", "x = 0.3", "verdict('R01', x)"],
    "evaluated from a name": ["text = '0.3'", "verdict('R01', ast.literal_eval(text))"],
    "a method of a text": ["verdict('R01', float('0,3'.replace(',', '.')))"],
    "under an IPython line": ["%matplotlib inline\nx = 0.3", "verdict('R01', x)"],
}
COMPUTED = {
    "a call": ["verdict('R01', measure())"],
    "a function of the notebook": ["def f(s):\n    x = torch.randn(3)\n    return x.mean()", "verdict('R01', [f(s) for s in range(5)])"],
    "appended": ["xs = []\nfor s in range(3):\n    xs.append(measure(s))", "verdict('R01', xs)"],
    "filled in": ["d = {}\nd['x'] = measure()", "verdict('R01', d['x'])"],
    "added up": ["t = 0\nfor s in range(3):\n    t += measure(s)", "verdict('R01', t)"],
    "another name inside a function": ["x = measure()\ndef f():\n    x = 0.3", "verdict('R01', x)"],
    "a method with a measured argument": ["verdict('R01', torch.tensor(0.3).sub(measure()))"],
    "nothing to measure": ["verdict('R01')"],
}  # fmt: skip


def test_a_hard_coded_figure_is_caught_and_a_computed_one_let_through():
    for name, cells in (HARD_CODED | COMPUTED).items():
        assert hard_coded_figures(cells) == ["R01"] * (name in HARD_CODED), name
