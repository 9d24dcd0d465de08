"""What the page for teachers says can be done as it is written there."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import types
import zipfile

import nbformat
import pytest

from course.grading import command, edges
from course.grading.answers import BOOK, ROOT, chapter, solution
from course.grading.grade import Rules, read_points

PAGE = (BOOK / "teaching/grading.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.full
def test_the_commands_grade_a_notebook_of_the_book_as_not_attempted(tmp_path):
    make, grade = blocks("bash")[0].strip().splitlines()
    assert f"\n{make.removeprefix('make ')}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    python, *rest = shlex.split(grade)
    assert python == ".venv/bin/python"
    (tmp_path / "handed_in").mkdir()
    shutil.copy(next(BOOK.glob("03_*.ipynb")), tmp_path / "handed_in")
    how = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    done = subprocess.run([sys.executable, *rest], **how, capture_output=True, text=True)
    assert (done.returncode, "0/50" in done.stdout) == (0, True), done.stderr
    listed = re.findall(r"^\| `([\w./]+)` \| ", PAGE, re.MULTILINE)
    assert len(listed) == 4
    for name in listed:
        assert (tmp_path / "graded" / name.replace("NAME", "03_positions")).stat().st_size


def test_options_points_and_numbers_are_those_of_the_command(tmp_path, capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    options = capsys.readouterr().out
    assert all(option in options for option in re.findall(r"`(--\w+)", PAGE))
    assert f"after {Rules().seconds:g} s" in PAGE and f"{Rules().megabytes} MB" in PAGE
    (tmp_path / "points.yml").write_text(blocks("yaml")[0])
    assert read_points(tmp_path / "points.yml") == {"multi_head": 10, "masked_softmax": 5}


@pytest.fixture
def right():
    names = {}
    exec(solution(chapter(2), "multi_head"), names)
    return names["multi_head"]


def wrong(x, w_qkv, w_out, heads):
    return x.clone()


def test_nbgraders_cells_pass_a_right_answer_and_give_a_wrong_one_less(right):
    require, share = blocks("python")[:2]
    exec(require, {"multi_head": right})
    with pytest.raises(AssertionError, match="multi_head: not yet"):
        exec(require, {"multi_head": wrong})
    start, end = share.strip().rsplit("\n", 1)
    for answer, points in ((right, 4), (wrong, 0)):
        names = {"multi_head": answer}
        exec(start, names)
        assert eval(end, names) == points


def test_otters_files_require_the_checks(right, monkeypatch, tmp_path):
    """Otter is stood in for; version 7.0.0 itself was run with such files once."""
    otter = types.ModuleType("otter.test_files")
    otter.test_case = lambda: lambda function: function
    monkeypatch.setitem(sys.modules, "otter", types.ModuleType("otter"))
    monkeypatch.setitem(sys.modules, "otter.test_files", otter)
    assert edges.otter(["2", "--out", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {*chapter(2).exercises}
    names = {}
    exec((tmp_path / "multi_head.py").read_text(), names)
    assert names["points"] == 10
    names["test_multi_head"](right)
    with pytest.raises(AssertionError, match="multi_head: not yet"):
        names["test_multi_head"](wrong)


def test_gradescopes_zip_grades_without_this_checkout(tmp_path):
    edges.gradescope(["3", "--out", str(tmp_path / "autograder.zip")])
    shutil.unpack_archive(tmp_path / "autograder.zip", tmp_path / "source")
    for folder in ("submission", "results", "bin"):
        (tmp_path / folder).mkdir()
    shutil.copy(next(BOOK.glob("03_*.ipynb")), tmp_path / "submission")
    (tmp_path / "bin/python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "bin/python3").chmod(0o755)
    own = {"AUTOGRADER": str(tmp_path), "PYTHONPATH": str(tmp_path / "source")}
    own["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    command = ["bash", tmp_path / "source/run_autograder"]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True)
    results = json.loads((tmp_path / "results/results.json").read_text())
    assert len(results["tests"]) == 5 and results["score"] == 0, done.stderr
    edges.gradescope(["26", "--out", str(tmp_path / "26.zip")])
    with zipfile.ZipFile(tmp_path / "26.zip") as file:  # an answer may not call a function of 28
        assert {"book/26_without_labels.ipynb", "book/28_a_vit_that_draws.ipynb"} <= {
            *file.namelist()
        }


def test_nbgraders_notebook_has_the_stubs_to_replace_and_locked_tests_with_points(right, tmp_path):
    edges.nbgrader(["2", "--out", str(tmp_path / "exercises.ipynb")])
    _, start, *cells = nbformat.read(tmp_path / "exercises.ipynb", as_version=4).cells
    kinds = [cell.metadata.nbgrader for cell in cells]
    assert [kind.grade for kind in kinds] == [False, True] * len(chapter(2).exercises)
    assert all("### BEGIN SOLUTION" in cell.source for cell in cells[::2])
    names = {"multi_head": right}
    exec(start.source, names)
    assert names["math"] and names["rearrange"]  # which the chapter imports elsewhere
    exec(next(cell.source for cell in cells if '"multi_head"' in cell.source), names)
