"""What holds for every notebook of the book, besides that nbval runs it and compares its outputs."""

import ast
import re
from collections import Counter
from itertools import groupby, pairwise

import pytest

from book.tools import portable
from book.tools.notebooks import cells, display_data, of_the_book, read, tags
from book.tools.portable import prose
from course.claims.ledger import MIME, chapters, harvest
from course.claims.rows import load
from tests.course.hard_coded import hard_coded_figures

CHAPTERS = [path for path in chapters() if path.stem in load().chapters]  # but the first hour


def of(paths):
    """Asks a test of each of these notebooks."""
    ids = [f"{path.parent.name}/{path.stem}" for path in paths]
    return pytest.mark.parametrize("path", paths, ids=ids)


def code(path):
    return [cell for cell in cells(path) if cell.cell_type == "code"]


@of(of_the_book())
def test_every_cell_fits_its_column_and_was_executed_in_order_without_error_or_warning(path):
    assert path.stat().st_size < 2e6, "a reader's browser and every clone carry it"
    executed = [cell for cell in code(path) if cell.source.strip()]
    assert [cell.execution_count for cell in executed] == list(range(1, len(executed) + 1))
    for cell in executed:
        for output in cell.outputs:
            assert output.output_type != "error" and output.get("name") != "stderr", cell.source
        if "hide-input" not in tags(cell):
            assert max(map(len, cell.source.splitlines())) <= 70, cell.source


@of(of_the_book())
def test_the_title_comes_first_the_text_is_plain_and_its_numbers_are_those_of_the_book(path):
    stored = read(path)
    assert stored.cells[0].source.startswith("# ") and "%pip" not in prose(path)
    assert portable.portable(portable.for_sphinx(stored), path) == stored, "run book.tools.portable"
    for text in (cell.source for cell in stored.cells if cell.cell_type == "markdown"):
        assert not re.search(r"\{[a-z:]+\}`|^\([\w-]+\)=$", text, re.MULTILINE), text


@of(of_the_book())
def test_the_first_line_of_an_answer_which_jupyterlab_shows_folded_tells_nothing(path):
    for cell in code(path):
        if "answer" in tags(cell) and "hide-input" not in tags(cell) and cell.outputs:
            first = cell.outputs[0].get("text", "").partition("\n")[0]
            assert not re.search(r"True|False|\d of \d|: .*\d", first), first


@of(of_the_book())
def test_nothing_private_is_imported(path):
    for node in (node for cell in code(path) for node in ast.walk(ast.parse(cell.source))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [getattr(node, "module", ""), *(alias.name for alias in node.names)]
            assert not re.search(r"\b_", " ".join(names)), ast.unparse(node)


def assigned(statements):
    """The names that a cell binds for the cells after it, but in loops."""
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.With):
            yield from assigned(node.body)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in getattr(node, "targets", None) or [node.target]:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                        yield part.id


@of(chapters())
def test_no_name_has_two_meanings(path):
    own = [cell for cell in code(path) if not {"exercise", "solution"} & set(tags(cell))]
    times = Counter(name for cell in own for name in set(assigned(ast.parse(cell.source).body)))
    plots = {"figure", "axes", "ax", "_"}
    assert {name for name, number in times.items() if number > 1} <= plots


@of(of_the_book())
def test_every_image_has_a_caption_and_says_what_it_shows(path):
    for cell in portable.cells(path):
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])):
            about = cell.metadata.get("mystnb", {})
            assert about["figure"]["caption"] and about["figure"]["name"], cell.source
            assert len(about["image"]["alt"]) > 40, cell.source


@of(chapters())
def test_verdicts_are_typed_nowhere_given_where_the_claims_belong_and_all_are_stored(path):
    sources = [cell.source for cell in code(path)]
    assert hard_coded_figures(sources) == []
    calls = [node for text in sources for node in ast.walk(ast.parse(text))]
    called = [ast.literal_eval(node.args[0]) for node in calls
              if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "verdict"]  # fmt: skip
    assert {load().claims[name].chapter for name in called} <= {path.stem}
    assert called == list(harvest([path]))
    mine = {name for name, claim in load().claims.items() if claim.chapter == path.stem}
    assert mine or path not in CHAPTERS, f"{path.stem} is no chapter of claims.yml"
    mentioned = set(re.findall(r"\{claim\}`(\w+)`", prose(path)))
    assert mine - mentioned == set(), "claims that the chapter does not mention"
    for name in mine - set(called):
        why = re.search(rf"\{{claim\}}`{name}`[^.]*stays? open", prose(path))
        assert why, f"why is {name} open?"


@of(CHAPTERS[:7])
def test_in_part_one_two_or_three_verdicts_settle_bets_and_a_list_at_the_end_has_the_others(path):
    bets, shown = [], []
    for is_answer, group in groupby(cells(path), lambda cell: "answer" in tags(cell)):
        run = list(group)
        bets += [cell.metadata.claim for cell in run if "claim" in cell.metadata]
        names = {data[MIME]["id"] for cell in run for data in display_data(cell) if MIME in data}
        assert is_answer or not names
        shown += [(names & {*bets}, names - {*bets})] if names else []
    assert 2 <= len(bets) <= 3
    *settled, (again, listed) = shown
    assert {name for bet, _ in settled for name in bet} == {*bets} and not again
    assert not any(others for _, others in settled) and listed


@of([path for path in chapters() if path.stem not in ("fine_tuning", "recipes")])
def test_a_chapter_has_four_exercises_or_more_each_with_its_check_and_the_first_hour_three(path):
    pairs = [(stub, check) for stub, check in pairwise(code(path)) if "exercise" in tags(stub)]
    assert len(pairs) >= (4 if path in CHAPTERS else 3)
    for stub, check in pairs:
        name = ast.parse(stub.source).body[-1].name
        assert check.source == f"check.{name}({name})"
        assert check.outputs[0].data["text/plain"] == f"{name}: not attempted yet"
