"""What comes of grading: points, tables for other systems, a page, and clear refusals."""

import csv
import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from course.grading import codec, command, tables
from course.grading.command import find
from course.grading.grade import Graded, Mark, Submission, read_points, share
from course.grading.tables import page

MARKS = (
    Mark("move_by", "passed", "", 1.0, 10.0, 10.0),
    Mark("rotary_2d", "failed", "It <turns> backwards.", 0.4, 4.0, 10.0, ("uses minivit",)),
)
DONE = Graded(Submission(Path("a.ipynb"), "Ada", "7"), "03_positions", MARKS, possible=20)
BROKEN = Graded(Submission(Path("b.ipynb"), "=1+1"), problem="The file is empty.", possible=20)


def read_rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_a_part_of_the_points_for_a_part_of_the_expectations():
    assert [share("failed", met, 8) for met in (-1, 0, 2, 8, 9)] == [0, 0, 1 / 4, 7 / 8, 7 / 8]
    parts = {"passed": 1, "stopped": 1 / 2, "open": 0, "missing": 0}
    assert {state: share(state, 4, 8) for state in parts} == parts
    assert share("failed", 3, 1) == share("failed", 0, 0) == 0


def test_tables_have_a_row_for_each_notebook_whatever_became_of_it(tmp_path):
    tables.write(tmp_path, [DONE, BROKEN])
    assert read_rows(tmp_path / "grades.csv") == [
        ["student", "id", "chapter", "points", "possible", "move_by", "rotary_2d", "remark"],
        ["Ada", "7", "03_positions", "14.0", "20", "10.0", "4.0", "rotary_2d: not yet: It <turns> backwards."],
        ["'=1+1", "", "", "0", "20", "", "", "The file is empty."],
    ]  # fmt: skip
    assert read_rows(tmp_path / "canvas.csv")[:3] == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "03_positions"],
        ["    Points Possible", "", "", "", "", "20"],
        ["Ada", "7", "", "", "", "14.0"],
    ]
    moodle = read_rows(tmp_path / "moodle.csv")
    assert moodle[0][0] == "Identifier" and moodle[1][:4] == ["Participant 7", "Ada", "14.0", "20"]
    assert "rotary_2d (4 of 10): not yet: It <turns> backwards." in moodle[1][4]
    assert len(json.loads((tmp_path / "grades.json").read_text())) == 2
    assert (tmp_path / "students" / "_1_1" / "report.html").exists()
    result = tables.as_gradescope(DONE)
    assert result["score"] == sum(test["score"] for test in result["tests"]) == 14
    assert {test["status"] for test in result["tests"]} == {"passed", "failed"}
    assert tables.as_gradescope(BROKEN)["output"] == "The file is empty."


def test_the_page_says_points_and_messages_and_runs_nothing_that_a_student_wrote():
    soup = BeautifulSoup(page(DONE), "html.parser")
    assert "14 of 20" in soup.p.text and not soup.find("turns")
    assert "It <turns> backwards." in soup.text and "40% of what is asked" in soup.text
    assert "The file is empty." in page(BROKEN)


def test_names_and_ids_come_from_what_canvas_and_moodle_call_files(tmp_path):
    paths = ["lovelaceada_4711_99_02_attention.ipynb", "lovelaceada_LATE_4711_98_x-1.ipynb"]
    paths += ["Ada Lovelace_815_assignsubmission_file_/x.ipynb", "grace/x.ipynb", "alan.ipynb"]
    for name in (*paths, ".ipynb_checkpoints/x-checkpoint.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = {each.path.relative_to(tmp_path).as_posix(): each for each in find(tmp_path)}
    assert [(found[n].student.split(" (")[0], found[n].id) for n in paths] == [
        ("lovelaceada", "4711"), ("lovelaceada", "4711"), ("Ada Lovelace", "815"), ("grace", ""), ("alan", "")
    ]  # fmt: skip
    assert len({each.student for each in found.values()}) == len(found) == 5


def test_points_that_make_no_sense_are_refused(tmp_path):
    path = tmp_path / "points.yml"
    for text, reason in {
        "multi_head: -1": "has 'multi_head': -1, expected",
        "multi_head: true": "has 'multi_head': True, expected",
        "multi_hat: 1": "has 'multi_hat': 1, expected an exercise",
        "[1]": r"has '\[1\]': None, expected",
        "": "has 'None': None, expected",
        "a: [": "is neither YAML nor JSON",
    }.items():
        path.write_text(text)
        with pytest.raises(ValueError, match=f"points.yml {reason}"):
            read_points(path)


def test_a_place_without_notebooks_and_options_without_sense_are_refused(tmp_path, capsys):
    out = tmp_path / "out"
    for place in (tmp_path, tmp_path / "nowhere"):
        assert command.main([str(place), "--out", str(out)]) == 2
    assert "has no notebook (*.ipynb) in it" in capsys.readouterr().err
    assert not out.exists()
    for wrong in (["--chapter", "99"], ["--time", "0"], ["--memory", "x"]):
        with pytest.raises(SystemExit):
            command.main([".", *wrong])
        assert f"argument {wrong[0]}: " in capsys.readouterr().err


def test_bytes_that_nobody_encoded_are_a_value_error():
    sizes_disagree = b'{"dtype": "torch.float32", "shape": [9], "data": ""}'
    no_dtype = b'{"dtype": "os", "shape": [], "data": ""}'
    no_json = (b"", b"\xff", b"[" * 10**5)
    for data in (*no_json, b"[]", b"{}", b'{"plain": []}', sizes_disagree, no_dtype):
        with pytest.raises(ValueError, match="not what encode writes"):
            codec.decode(data)
