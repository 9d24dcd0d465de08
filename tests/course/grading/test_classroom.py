"""A simulated class is graded to exactly the table beside this file."""

import csv
import json
import time
from pathlib import Path

import pytest

from course.grading import command
from tests.course.grading import classroom

EXPECTED = Path(__file__).parent / "expected.csv"
FEW = ("right_with_solutions_in_it", "dies", "edited_checks", "renamed", "other_chapter", "empty")
LIMITS = ("--time", "15", "--memory", "1000", "--jobs", "2", "--chapter", str(classroom.CHAPTER))


def graded(folder, names=()):
    """Rows of student, exercise, state, points and message, for each notebook of a class."""
    classroom.write(folder / "handed in", names)
    out = folder / "graded"
    assert command.main([str(folder / "handed in"), "--out", str(out), *LIMITS]) == 0
    rows = []
    for each in json.loads((out / "grades.json").read_text()):
        if each["problem"]:
            rows.append([each["student"], "", "", f"{each['points']:g}", each["problem"]])
        for mark in each["exercises"]:
            marks = [mark["name"], mark["state"], f"{mark['points']:g}", mark["message"]]
            rows.append([each["student"], *marks])
    return rows


def expected(names=None):
    with EXPECTED.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.reader(file) if names is None or row[0] in names]


def test_six_of_the_class_get_what_they_should(tmp_path):
    assert graded(tmp_path, FEW) == expected(FEW)


@pytest.mark.full
def test_a_class_of_forty_gets_what_it_should_in_under_ten_minutes(tmp_path):
    began = time.monotonic()
    found = graded(tmp_path)
    assert found == expected()
    assert len({student for student, *_ in found}) == 40
    lacking = json.loads((tmp_path / "graded" / "grades.json").read_text())[0]["isolation_lacks"]
    assert lacking or (tmp_path / "handed in" / "decoy").exists()
    assert time.monotonic() - began < 600


def test_the_table_gives_each_wrong_answer_its_message_and_all_points_to_right_ones_alone():
    known = classroom.answers(classroom.FIRST)["WRONG"]
    messages = {(student, name): message for student, name, _, _, message in expected()}
    for turn in range(9):
        for name in classroom.NAMES:
            fragment, _ = known[name][turn % len(known[name])]
            assert fragment in messages[f"wrong_{turn}", name]
    whole = {(student, name) for student, name, state, *_ in expected() if state == "passed"}
    assert {(s, n) for s, n, _, points, _ in expected() if points == "10"} == whole
    assert not {s for s, _ in whole} & {f"wrong_{turn}" for turn in range(9)}
    assert not {("edited_from_inside", classroom.FIRST), ("forges", classroom.FIRST)} & whole
