"""Every function of the hand-out and of packages is tried as an answer: what solves one is refused."""

import ast
import importlib
import inspect
import pkgutil
import re
from functools import cache

import pytest
import torch

from course import book_vit
from course.check.attempt import Attempt, NotYet, close
from course.check.exercise import EXERCISES, double_precision
from course.grading.answers import BOOK, REFUSED, SOLVES, answer, chapter, exercises, program
from course.grading.examiner import examine
from course.grading.notebook import read
from tests.course.grading.test_reading import written
from tests.course.harness import OutOfTime, answers, limited

OF_TORCH = ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft")
WORK = re.compile(r"__main__|\.(commands|data|training|claims)\b")  # which no exercise asks for
UNSAFE = ("set_", "save", "load", "compile", "_", "fork", "wait", "manual", "vmap", "from_file")
ONE_CALL = [
    ("scaled_dot_product_attention", "(q, k, v, mask=None)", "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"),
    ("scaled_dot_product_attention", "(q, k, v, mask=None)", "minivit.vit.scaled_dot_product_attention(q, k, v, mask)"),
    ("chunked_attention", "(q, k, v, chunk)", "F.scaled_dot_product_attention(q, k, v)"),
    ("layer_norm", "(x, weight, bias, eps)", "F.layer_norm(x, x.shape[-1:], weight, bias, eps)"),
    ("drop_path", "(x, rate, training)", "F.dropout3d(x, rate, training)"),
    ("patchify", "(images, patch)", "course.book_vit.patchify(images, patch)"),
    ("block", "(x, n, a, m, f)", "course.mine.load('block').block(x, n, a, m, f)"),
    ("multi_head", "(*x)", "(exec(course.pieces.BOOK, space := {}), space['multi_head'](*x))[1]"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):  # which prints to no file
    monkeypatch.chdir(tmp_path)  # where my_vit.py is written


@pytest.mark.parametrize(("name", "arguments", "call"), ONE_CALL)
def test_an_answer_of_one_call_is_refused_and_gets_nothing(name, arguments, call, folder):
    start = "import minivit.vit, course.mine\nimport torch.nn.functional as F\n"
    outcome = examine(name, f"{start}def {name}{arguments}:\n    return {call}\n", 30, 1000)
    assert outcome.state == "refused" and "solves the exercise in one call" in outcome.message


@pytest.mark.parametrize(("name", "other", "number", "state"), [
    ("antisymmetric_share", "antisymmetric_part", 2, "refused"),
    ("feature_cka", "cka", 5, "refused"),
    ("undo_residual", "undo", 15, "refused"),
    ("ema", "guided", 28, "refused"),  # an exercise: whoever has written it
    ("feature_cka", "cka", None, "missing"),
])  # fmt: skip
def test_what_a_chapter_prints_or_asks_for_is_refused_as_it_stands_and_ones_own_is_not(
    name, other, number, state, tmp_path
):
    printed = chapter(number).printed if number else {}
    helper = printed.get(other, f"def {other}(a, b):\n    return 1.0")
    own = f"def {name}(a, b):\n    return {other}(a, b)"
    of = chapter(next(n for n, names in exercises().items() if name in names))
    found = answer(read(written(tmp_path, helper, own)), of, name)
    assert (found.state, bool(found.source)) == (state, state == "missing")
    assert found.missing == f"It calls {other} of chapter {number}, {SOLVES}." or not number


def test_earlier_pieces_that_a_chapter_builds_on_are_not_refused(folder):
    loads = "from course import mine\nmulti_head = mine.load('multi_head').multi_head\n"
    block = "def block(x, n, a, m, f):\n    x = x + a(n(x))\n    return x + f(m(x))\n"
    assert examine("block", loads + block, 30, 1000).state == "passed"


@cache
def of_packages():
    modules = [*map(importlib.import_module, OF_TORCH), importlib.import_module("course.book_vit")]
    for package in ("minivit", "vitlab"):
        path = importlib.import_module(package).__path__
        names = [each.name for each in pkgutil.walk_packages(path, f"{package}.")]
        modules += map(importlib.import_module, (n for n in names if not WORK.search(n)))
    return {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if callable(value) and not inspect.isclass(value) and not name.startswith(UNSAFE)
        and getattr(value, "__module__", None) in (module.__name__, None, "torch._C._nn", "torch.functional")
    }  # fmt: skip


@cache
def printed(number):
    """The functions that a chapter's notebook defines by nothing but functions and imports."""
    (path,) = BOOK.glob(f"{number:02}_*.ipynb")
    listed = [each for each in read(path).statements if not each.of_book]
    simple = ast.FunctionDef | ast.Import | ast.ImportFrom
    listed = [s for s in listed if all(isinstance(n, simple) for n in ast.parse(s.text).body)]
    found = {}
    for name in {name for each in listed for name in each.gives} - {*exercises()[number]}:
        namespace = {}
        with limited():
            try:
                exec(program(listed, name), namespace)
            except Exception:
                continue
        if getattr(namespace[name], "__module__", "") == "builtins":  # and not imported
            found[f"{name}@{number}"] = namespace[name]
    return found


class First(Attempt):
    """Keeps what the function is first given, and what it returns."""

    def _call(self, inputs, within):
        result = super()._call(inputs, within)
        self.seen = getattr(self, "seen", (inputs, result))
        return result


def solves(name, function, inputs, right):
    try:
        with limited(2), double_precision():
            result = function(*(x.clone() if isinstance(x, torch.Tensor) else x for x in inputs))
            if isinstance(right, torch.Tensor) and not close(result, right, 10):
                return False
        with limited(60):
            EXERCISES[name].examine(Attempt(function))
    except (NotYet, OutOfTime, Exception, SystemExit):
        return False
    return True


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(EXERCISES))
def test_whatever_solves_an_exercise_by_itself_is_on_the_list(name):
    attempt = First(answers(name)[name])
    EXERCISES[name].examine(attempt)
    tried = {**of_packages(), "course.book_vit.ViT": book_vit.ViT}
    for number, names in exercises().items():
        tried |= printed(number)
        if name not in names:  # an earlier exercise of the same chapter may lead to this one
            tried |= {f"{other}@{number}": answers(other)[other] for other in names}
    assert len(tried) > 1000
    found = {other for other, function in tried.items() if solves(name, function, *attempt.seen)}
    assert found <= {*REFUSED.get(name, ())}
