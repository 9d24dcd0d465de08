"""What comes of grading: points, tables for other systems, a page, and clear refusals."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from course.grading import codec, command, grade, plain, tables
from course.grading.examiner import examine
from course.grading.grade import Graded, Mark, read_points, share
from course.grading.handed_in import Submission
from course.grading.plain import free
from course.grading.similar import alike
from course.grading.tables import page
from tests.course.grading.classroom import COPIED, SOLVED

MARKS = (
    Mark("move_by", "passed", "", 1.0, 10.0, 10.0),
    Mark("rotary_2d", "failed", "It <turns> backwards.", 0.4, 4.0, 10.0, ("uses minivit",)),
)
ADA = Submission(Path("a.ipynb"), "Ada", "7", "a.ipynb")
DONE = Graded(ADA, "03_positions", MARKS, possible=20)
BROKEN = Graded(Submission(Path(), "=1+1", file="=1"), problem="The file is empty.", possible=20)
HEADS = ["student", "id", "file", "chapter", "counts", "points", "possible"]
REST = ["remark", "notes", "points by hand", "comment"]


def read_rows(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.reader(file))


def test_a_part_of_the_points_for_a_part_of_the_expectations():
    assert [share("failed", met, 8) for met in (-1, 0, 2, 8, 9)] == [0, 0, 1 / 4, 7 / 8, 7 / 8]
    parts = {"passed": 1, "stopped": 1 / 2, "open": 0, "missing": 0}
    assert {state: share(state, 4, 8) for state in parts} == parts
    assert share("failed", 3, 1) == share("failed", 0, 0) == share("failed", 3, 8, 3) == 0
    assert share("failed", 5, 8, 4) == 1 / 4


@pytest.mark.parametrize("name", ["add_positions", "multi_head", "scaled_dot_product_attention"])
def test_giving_back_the_input_is_worth_nothing_here_and_in_nbgrader(name):
    idle, number = examine(name, f"def {name}(x, *rest):\n    return x\n", 20, 1000), free(name)[1]
    assert share(idle.state, idle.met, 99, number) == plain.share(name, lambda x, *_: x, of=99) == 0


def test_tables_have_a_row_for_each_file_whatever_became_of_it(tmp_path):
    tables.write(tmp_path, [DONE, BROKEN])
    assert read_rows(tmp_path / "grades.csv") == [
        [*HEADS, "move_by", "rotary_2d", *REST],
        ["Ada", "7", "a.ipynb", "03_positions", "yes", "14.0", "20", "10.0", "4.0", "rotary_2d: not yet: It <turns> backwards.", "rotary_2d: uses minivit", "", ""],
        ["'=1+1", "", "'=1", "", "yes", "0", "20", "", "", "The file is empty.", "", "", ""],
    ]  # fmt: skip
    assert len(json.loads((tmp_path / "grades.json").read_text())) == 2
    twin = replace(DONE, submission=replace(DONE.submission, id="8"))
    tables.write_pages(tmp_path, [DONE, BROKEN, twin])
    names = {path.name for path in (tmp_path / "students").iterdir()}
    assert names == {"Ada (7)", "Ada (8)", "_1_1"}
    result = tables.as_gradescope(DONE)
    assert result["score"] == sum(test["score"] for test in result["tests"]) == 14
    assert {test["status"] for test in result["tests"]} == {"passed", "failed"}
    assert tables.as_gradescope(BROKEN)["output"] == "The file is empty."


def test_of_a_students_files_the_best_counts_or_the_last_and_never_one_without_an_exercise():
    def handed_in(file, points, turn=0, chapter="03_positions"):
        marks = (Mark("move_by", "failed", "", 1.0, points, 10.0),) * (points is not None)
        return Graded(Submission(Path(file), "Ada", "7", file, turn), chapter, marks)

    listed = [handed_in("a", 9.0, 1), handed_in("b", 5.0, 2), handed_in("c.docx", None, 3)]
    other = [handed_in("d", 1.0, 4, "02_attention")]
    for last, kept, best in ((False, {}, "a"), (True, {}, "b"), (False, {"b": ("6,5", "")}, "b")):
        chosen = [each for each in tables.counted(listed + other, last, kept) if each.counts]
        assert [each.submission.file for each in chosen] == [best, "d"]
    assert chosen[0].points == 6.5
    assert [each.counts for each in tables.counted(listed[2:], False, {})] == [True]


def test_what_a_teacher_adds_to_the_table_survives_and_is_never_lost(tmp_path):
    tables.write(tmp_path, [DONE, BROKEN])
    text = (tmp_path / "grades.csv").read_text(encoding="utf-8-sig")
    edited = text.replace(",", ";").replace("14.0;20", "15,5;20")
    edited = edited.replace("empty.;;;", "empty.;;3;-ü")
    (tmp_path / "grades.csv").write_bytes(edited.encode("cp1252"))  # as a spreadsheet saves it
    files = ["a.ipynb", "=1"]
    kept = tables.by_hand(tmp_path, files)
    assert kept == {"a.ipynb": ("15,5", ""), "=1": ("3", "-ü")}
    again = tables.counted([DONE, BROKEN], False, kept)
    assert [each.points for each in again] == [15.5, 3.0]
    assert "-ü" in page(again[1]) and "-ü" in tables.comment(again[1])
    tables.write(tmp_path, again)
    assert tables.by_hand(tmp_path, files) == kept
    many = edited.replace(";3;", ";many;")
    for reason, wrong in ("which was not handed in", edited), ("'many', expected", many):
        (tmp_path / "grades.csv").write_text(wrong, encoding="utf-8")
        with pytest.raises(ValueError, match=reason):
            tables.by_hand(tmp_path, files if "many" in reason else files[:1])
    (tmp_path / "grades.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="no table of this grader"):
        tables.by_hand(tmp_path, files)


def test_no_file_stops_the_others_and_a_restart_goes_on_where_it_stopped(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.ipynb").write_text(f'["{name}"]')
    read, turns = grade.read_apart, iter([RuntimeError("nobody thought of it"), KeyboardInterrupt])

    def stops(path):
        if path.stem != "a":
            raise next(turns)
        return read(path)

    monkeypatch.setattr(grade, "read_apart", stops)
    command_line = [str(tmp_path), "--out", str(tmp_path / ".out"), "--jobs", "1"]
    with pytest.raises(KeyboardInterrupt):
        command.main(command_line)
    rows = {row[2]: row[-4] for row in read_rows(tmp_path / ".out" / "grades.csv")[1:]}
    unlisted = "The file is JSON, but no notebook: it has no list of cells."
    failed = "The grader failed: RuntimeError('nobody thought of it')"
    assert rows == {"a.ipynb": unlisted, "b.ipynb": failed, "c.ipynb": command.WAITS}
    asked = []
    monkeypatch.setattr(grade, "read_apart", lambda path: asked.append(path.stem) or read(path))
    assert command.main(command_line) == 0
    assert asked == ["b", "c"]


def test_answers_that_look_alike_are_pointed_out_and_the_same_by_different_ways_is_not():
    copied = COPIED.replace("result", "ergebnis").replace("angle", "winkel").replace("every", "je")
    sources = {"a": COPIED, "b": copied, "c": SOLVED["move_by"]}
    marks = {who: (replace(MARKS[0], source=source),) for who, source in sources.items()}
    found = alike(Graded(Submission(Path(), who), "", own) for who, own in marks.items())
    assert found == {"a": "like b in move_by", "b": "like a in move_by"}
    class_of_them = [Graded(Submission(Path(), str(i)), "", marks["a"]) for i in range(4)]
    assert alike(class_of_them) == {}


def test_what_an_unusual_answer_raises_is_not_shown_to_its_student():
    loud = Mark("move_by", "failed", "KeyError: secret", 0, 0, 10, ("looks unusual: os.",))
    assert "secret" not in page(replace(DONE, marks=(loud,))) and "secret" not in loud.sentence


def test_the_page_says_points_and_messages_and_runs_nothing_that_a_student_wrote():
    soup = BeautifulSoup(page(DONE), "html.parser")
    assert "14 of 20" in soup.p.text and not soup.find("turns")
    assert "It <turns> backwards." in soup.text and "40% of what is asked" in soup.text
    assert "The file is empty." in page(BROKEN)


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
    for place, said in ((tmp_path, "has no file in it"), (tmp_path / "nowhere", "does not exist")):
        assert command.main([str(place), "--out", str(out)]) == 2
        assert said in capsys.readouterr().err
    assert not out.exists()
    for wrong in (["--chapter", "99"], ["--time", "0"], ["--memory", "x"], ["--attempt", "first"]):
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
