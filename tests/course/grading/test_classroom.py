"""A simulated class is graded to exactly the table beside this file."""

import csv
import json
from pathlib import Path

import pytest

from course.grading import command
from tests.course.grading import classroom

EXPECTED = Path(__file__).parent / "expected.csv"
FEW = ("right_with_solutions_in_it.ipynb", "dies.ipynb", "edited_checks.ipynb", "empty.ipynb")
FEW += ("Anna Müller_5001_assignsubmission_file_/03_positions.py", "M\udcfcller.ipynb", "nothing")
LIMITS = ("--time", "15", "--memory", "1000", "--jobs", "2", "--chapter", str(classroom.CHAPTER))


def graded(folder, names=()):
    """Rows of file, exercise, state, points and message, for each notebook of a class."""
    classroom.write(folder / "handed in", names)
    out = folder / "graded"
    assert command.main([str(folder / "handed in"), "--out", str(out), *LIMITS]) == 0
    rows = []
    for each in json.loads((out / "grades.json").read_text()):
        if each["problem"]:
            rows.append([each["file"], "", "", f"{each['points']:g}", each["problem"]])
        for mark in each["exercises"]:
            marks = [mark["name"], mark["state"], f"{mark['points']:g}", mark["message"]]
            rows.append([each["file"], *marks])
    return rows


def expected(names=None):
    with EXPECTED.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.reader(file) if names is None or row[0] in names]


@pytest.mark.full
def test_some_of_the_class_get_what_they_should_whatever_their_files_are(tmp_path):
    assert graded(tmp_path, FEW) == expected([name.replace("\udcfc", "ü") for name in FEW])


@pytest.mark.full
def test_a_class_of_sixty_four_gets_what_it_should_and_no_file_is_lost(tmp_path):
    found = graded(tmp_path)
    assert found == expected()
    with (tmp_path / "graded" / "grades.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert len({row["id"] or row["student"] for row in rows}) == 64
    assert len(rows) == len({row["file"] for row in rows}) == len({row[0] for row in found})
    looks = {row["student"]: row["notes"] for row in rows}
    assert "like copied in move_by" in looks["copied_and_translated"]
    assert looks["right"] == looks["utf_16"] == ""
    lacking = json.loads((tmp_path / "graded" / "grades.json").read_text())[0]["isolation_lacks"]
    assert lacking or (tmp_path / "decoy").exists()
