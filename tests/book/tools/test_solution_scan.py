"""No solution stands where students read, and one that is put there is found, wherever it is."""

import html
import json
import re
from functools import cache

import nbformat

from book.tools import notebooks
from book.tools.address import ROOT
from book.tools.edition import solution_scan as tool
from book.tools.edition.handout import problems
from book.tools.edition.solution_scan import TOKENS, leaks, runs, secrets, solutions, tokens
from book.tools.edition.tree import Edition, table

LEFT_OUT = table(Edition(student=True))[1]


@cache
def sources():
    """Each solution's cell by the name of its function."""
    return {
        secret.name: cell.source
        for path in notebooks.of_the_book()
        for cell in notebooks.cells(path)
        if "solution" in notebooks.tags(cell)
        for secret in solutions(path)
        if re.search(rf"(def|class) {secret.name}\(", cell.source)
    }


def test_every_solution_is_found_in_whatever_form(tmp_path):
    assert len(sources()) > 100
    names = set()
    for function, source in sources().items():
        words = "</span> <span>".join(html.escape(word) for word in source.split(" "))
        cell = nbformat.v4.new_code_cell(source)
        forms = {
            "page.html": f"<pre><span>{words}</span></pre>",
            "page.ipynb": nbformat.writes(nbformat.v4.new_notebook(cells=[cell])),
            "page.md": f"It is\n```python\n{source}\n```\n",
            "data.json": json.dumps({"code": source}),
            "commented.py": source.replace("\n", "\n# "),
        }
        (tmp_path / function).mkdir()
        for name, text in forms.items():
            (tmp_path / function / name).write_text(text, encoding="utf-8")
            names.add((f"{function}/{name}", function))
    assert names <= {tuple(line.split(": ")[:2]) for line in leaks(tmp_path, LEFT_OUT)}


def test_a_part_of_a_solution_is_found_in_any_encoding_and_its_signature_is_none(tmp_path):
    lines = sources()["chunked_attention"].splitlines()
    (tmp_path / "signature.py").write_text(lines[0])
    assert leaks(tmp_path, LEFT_OUT) == []
    (tmp_path / "part.js").write_text("\n".join(lines[8:18]), encoding="utf-16")
    assert leaks(tmp_path, LEFT_OUT)[0].startswith("part.js: chunked_attention: ")


def test_a_page_that_is_left_out_is_found_and_so_are_its_words_and_its_name(tmp_path):
    names = "solutions/02_attention", "teaching/exam_marking", "teaching/questions"
    for number, name in enumerate(names):
        words = tool.text_of_page(*ROOT.glob(f"book/{name}.*")).parts[40:70]
        (tmp_path / f"{number}.html").write_text("<p>" + "</b> <b>".join(words))
    target = tmp_path / "book/teaching/exam_marking.html"
    target.parent.mkdir(parents=True)
    target.touch()
    (tmp_path / "searchindex.js").write_text('Search.setIndex({"docnames": ["book/solutions"]})')
    *said, page, search = leaks(tmp_path, LEFT_OUT)
    for number, name in enumerate(names):
        assert any(line.startswith(f"{number}.html: {name}: ") for line in said), name
    assert page == "book/teaching/exam_marking.html: the page is there"
    assert search == "searchindex.js: finds book/solutions"


def test_a_solution_is_found_in_the_chapter_that_prints_a_part_of_it(handed_out, tmp_path):
    """What a chapter may print of a solution hides no more of it than that."""
    assert problems(Edition(student=True), handed_out) == []
    for solution, chapter in ((name, c) for name, cs in tool.ALLOWED["cells"].items() for c in cs):
        path = tmp_path / f"{chapter}.ipynb"
        student = notebooks.read(handed_out / path.name)
        student.cells.append(nbformat.v4.new_code_cell(sources()[solution]))
        notebooks.write(path, student)
        met = {name for name, run in tool.matches(tool.readable(path), tool.known(LEFT_OUT))
               if run not in tool.demonstrated(name, path.stem)}  # fmt: skip
        whole = solution == "undo_residual"  # which chapter 15 prints from end to end
        assert (solution in met) != whole, (solution, chapter)


def test_each_exception_is_needed():
    known = {secret.name: secret for secret in secrets(frozenset())}
    for file, names in tool.ALLOWED["files"].items():
        text = (ROOT / file).read_text(encoding="utf-8")
        assert {*names} <= {name for name, _ in tool.matches(text, tool.known(LEFT_OUT))}, file
    cells = ((name, *item) for name, cs in tool.ALLOWED["cells"].items() for item in cs.items())
    for solution, chapter, allowed in cells:
        assert tool.demonstrated(solution, chapter), (solution, chapter)
        for cell in notebooks.cells(ROOT / f"book/{chapter}.ipynb"):
            shared = known[solution].runs() & runs(tokens(cell.source), TOKENS)
            if shared and "solution" not in notebooks.tags(cell):
                assert cell.id in allowed
