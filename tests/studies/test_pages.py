"""Commands that pages, model cards and stored results print are those that there are."""

import re

import pytest

from course.results import RESULTS, study
from studies.runner.command import NAMES, load, main
from studies.runner.storage import HERE, ROOT
from studies.runner.study import Study

PAGES = [
    *(ROOT / "book").glob("*.ipynb"),
    *(ROOT / "book/solutions").glob("*.ipynb"),
    *(ROOT / "minivit/checkpoints").glob("*.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "index.md")),
]
COMMAND = re.compile(r"python -m studies[ .](\w+)(?: --recheck (\w+))?")


def test_each_study_has_the_name_of_its_module_and_of_its_results():
    assert [load(name).name for name in NAMES] == NAMES
    assert sorted(path.stem for path in RESULTS.glob("*.json")) == NAMES
    assert all(study(name).command == f"python -m studies {name}" for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_study_finds_each_of_its_stored_rows(name):
    table, rows = load(name), study(name).rows
    if not isinstance(table, Study):
        assert set(rows) <= set(table.rows)
        return
    assert list(rows) == list(table.rows) and table.missing(HERE) == []
    for row, figures in rows.items():
        assert list(figures["search"]) == [run.key for run in table.rows[row]]
        assert figures["runs"] == [run.key for run in table.followers(row, HERE)]


def test_no_best_rate_is_at_the_edge_of_those_tried():
    rows = {f"{name}: {row}": found for name in NAMES for row, found in study(name).rows.items()}
    bracketed = {w: found for w, found in rows.items() if isinstance(found.get("rates"), dict)}
    assert bracketed
    for where, figures in bracketed.items():
        tried = sorted(map(float, figures["rates"]))
        assert figures["rate"] in tried[1:-1], where
        assert figures["rates"][f"{figures['rate']:g}"] == max(figures["rates"].values()), where


def test_commands_that_pages_print_can_be_typed():
    texts = {path: path.read_text(encoding="utf-8") for path in PAGES}
    # What a model card says of its past may be gone.
    printed = {p: COMMAND.findall(text.partition("## Made by")[0]) for p, text in texts.items()}
    assert sum(map(len, printed.values())) > 20
    for path, commands in printed.items():
        for name, key in commands:
            assert name in [*NAMES, "NAME", "benchmarks"], path
            rows = study(name).rows.values() if key else ()
            assert not key or any(key in (*row["search"], *row["runs"]) for row in rows), path


def test_a_study_is_chosen_by_its_name(capsys):
    assert main(["unwinding", "--list"]) == 0
    assert capsys.readouterr().out.count("measured") == len(load("unwinding").rows)
    for options, message in (
        (["unwound"], "invalid choice: 'unwound'"),
        (["heads", "--rows", "x"], "no rows x:"),
        (["heads", "--publish", "x", "y"], "no rows x:"),
    ):
        with pytest.raises(SystemExit):
            main(options)
        assert message in capsys.readouterr().err
