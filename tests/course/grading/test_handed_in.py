"""What is found of what a class handed in: nothing is lost, whatever its names and zips are."""

import os

import pytest

from course.grading import handed_in
from course.grading.handed_in import find
from tests.course.grading.classroom import zipped


def found(folder, scratch, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    scratch.mkdir(exist_ok=True)
    return {each.file: each for each in find(folder, scratch)}


@pytest.mark.parametrize(("file", "student", "number"), [
    ("lovelaceada_4711_99_02_attention.ipynb", "lovelaceada", "4711"),
    ("lovelaceada_LATE_4711_98_x-1.ipynb", "lovelaceada", "4711"),
    ("Ada Lovelace_815_assignsubmission_file_/x.ipynb", "Ada Lovelace", "815"),
    ("Group A-Ben O'Neil_816_assignsubmission_file_03_positions.ipynb", "Group A-Ben O'Neil", "816"),
    ("grace/x.ipynb", "grace", ""),
    ("alan.py", "alan", ""),
    ("03_2_positions.ipynb", "03_2_positions", ""),
])  # fmt: skip
def test_names_and_ids_come_from_what_canvas_and_moodle_call_files(tmp_path, file, student, number):
    each = found(tmp_path / "in", tmp_path / "scratch", file, "other.ipynb")[file]
    assert (each.student, each.id, each.problem) == (student, number, "")


def test_no_file_is_lost_and_what_systems_add_is_none(tmp_path):
    (tmp_path / "in" / "nobody").mkdir(parents=True)
    os.symlink("/etc/passwd", tmp_path / "in" / "link.ipynb")
    os.mkfifo(tmp_path / "in" / "pipe.ipynb")
    for name, data in {
        "a.zip": zipped(x__ipynb="", x__py="", x__png=""), "b.zip": zipped(x__png=""),
        "c.zip": zipped(x__zip=zipped(x__ipynb="")), "d.zip": b"PK", "M\udcfcller.ipynb": b"",
        "Mu\N{COMBINING DIAERESIS}ller.ipynb": b"", "e\nf.ipynb": b"",
        "deep.zip": zipped(x__zip=zipped(x__zip=zipped(x__ipynb=""))),
    }.items():  # fmt: skip
        (tmp_path / "in" / name).write_bytes(data)
    junk = ".ipynb_checkpoints/x-checkpoint.ipynb", "__MACOSX/._a.ipynb", "Thumbs.db"
    each = found(tmp_path / "in", tmp_path / "scratch", *junk, "g/h/i.ipynb")
    problems = {name: row.problem for name, row in each.items()}
    closed = "It cannot be opened: "
    assert problems == {
        "Müller.ipynb": "", "Müller.ipynb'": "", "a.zip/x.ipynb": "", "c.zip/x.zip/x.ipynb": "",
        "e\N{REPLACEMENT CHARACTER}f.ipynb": "", "g/h/i.ipynb": "",
        "b.zip": "There is no notebook in it.", "nobody": "There is no notebook in it.",
        "d.zip": f"{closed}File is not a zip file.",
        "deep.zip/x.zip/x.zip": f"{closed}too deep in folders or in other zips.",
        "link.ipynb": f"{closed}a link or a device, no file.",
        "pipe.ipynb": f"{closed}a link or a device, no file.",
    }  # fmt: skip


def test_a_zip_or_a_folder_around_the_class_is_no_students(tmp_path, monkeypatch):
    (tmp_path / "class.zip").write_bytes(zipped(a__ipynb="", b__zip=zipped(x__ipynb="")))
    (tmp_path / "scratch").mkdir()
    each = find(tmp_path / "class.zip", tmp_path / "scratch")
    assert [(e.student, e.file) for e in each] == [("a", "a.ipynb"), ("b", "b.zip/x.ipynb")]
    names = ("submissions/a.ipynb", "submissions/b/x.ipynb")
    assert {*found(tmp_path / "in", tmp_path / "scratch", *names)} == {"a.ipynb", "b/x.ipynb"}
    monkeypatch.setattr(handed_in, "LARGEST", 10)
    (tmp_path / "big.zip").write_bytes(zipped(a__ipynb="x" * 11))
    with pytest.raises(ValueError, match="unpacks to over"):
        find(tmp_path / "big.zip", tmp_path / "scratch")
