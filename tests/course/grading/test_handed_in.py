"""What is found of what a class handed in, whatever its names are, and the tables to fill in."""

import os

import pytest

from course.grading import filled, handed_in
from course.grading.filled import Grade
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


GRADES = {
    "5001": Grade(25, 50, "25 of 50\nx < y"),
    "5003": Grade(50, 50, "all"),
    "9": Grade(1, 1, ""),
}
ENGLISH = (  # the columns of mod/assign/gradingtable.php, of Moodle
    'Identifier,"Full name",Status,Grade,"Maximum grade","Grade can be changed","Last modified (grade)","Feedback comments"\r\n'
    'Participant 5001,"Müller, Anna",Submitted,,100.00,Yes,-,\r\n'
    'Participant 5002,"Ben ""B"" O\'Neil",Nothing,,100.00,Yes,-,"kept, as it is"\r\n'
    'Participant 5003,Cy,Submitted,40.00,100.00,Yes,"Friday, 27 November 2026, 9:53 AM",By hand.'
)
GERMAN = (
    "\ufeffID;Vollständiger Name;Matrikelnummer;Status;Bewertung;Beste Bewertung;"
    "Zuletzt geändert (Bewertung);Feedback als Kommentar\n"
    "Teilnehmer/in5001;Anna Müller;7;Abgegeben;;50,00;-;\n"
    "Teilnehmer/in5003;Cy;7;Abgegeben;12,50;50,00;-;\n"
)
OURS = "Checked automatically: {}<br>\n(End of what was checked.)"
FIRST, THIRD = OURS.format("25 of 50<br>\nx &lt; y"), OURS.format("all")
CANVAS = (  # the columns of lib/gradebook_exporter.rb, of Canvas
    "Student,ID,SIS User ID,SIS Login ID,Section,02 attention (70),03 positions (71),Final Score\n"
    ",,,,,Manual Posting,,\n    Points Possible,,,,,10.00,20.00,(read only)\n"
    '"Müller, Anna",5001,,am,A,3,,50.00\n"Roe, R",5003,,rr,A,,EX,0.0\n"Test",8,,t,A,,N/A,\n'
)


@pytest.mark.parametrize(("text", "cells"), [
    (ENGLISH, {"Submitted,,100.00,Yes,-,\r": f'Submitted,50.00,100.00,Yes,-,"{FIRST}"\r',
               "40.00,100": "100.00,100", "By hand.": f'"By hand.<br>\n{THIRD}"'}),
    (GERMAN, {";;50,00;-;": f';25,00;50,00;-;"{FIRST}"', ";12,50;50,00;-;": f';50,00;50,00;-;"{THIRD}"'}),
])  # fmt: skip
def test_moodles_worksheet_keeps_every_other_byte_and_what_others_wrote(tmp_path, text, cells):
    path, wanted = tmp_path / "given.csv", text
    path.write_bytes(text.encode())
    sheet, lost = filled.moodle(path, GRADES)
    for old, new in cells.items():
        assert old in wanted
        wanted = wanted.replace(old, new)
    sheet.save(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == wanted.encode() and lost == {"9"}
    sheet, _ = filled.moodle(tmp_path / "out.csv", GRADES)  # again, with the comment there already
    sheet.save(path)
    assert path.read_bytes() == wanted.encode()


def test_canvas_gradebook_is_filled_but_for_who_is_excused_or_not_assigned(tmp_path):
    path = tmp_path / "given.csv"
    path.write_text(CANVAS, encoding="utf-8")
    sheet, lost = filled.canvas(path, GRADES | {"8": Grade(1, 1, "")}, "03 positions")
    sheet.save(path)
    assert path.read_text(encoding="utf-8") == CANVAS.replace("A,3,,50", "A,3,10.00,50")
    assert lost == {"5003", "8", "9"}
    said = "'', expected one assignment .* 02 attention, 03 positions"
    with pytest.raises(ValueError, match=said):
        filled.canvas(path, {})


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", ENGLISH.replace("100.00", "Good"), '"a\n', CANVAS]
)
def test_what_is_no_worksheet_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "given.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="is not Moodle's|is no CSV") as raised:
        filled.moodle(tmp_path / "given.csv", {})
    assert "\n" not in str(raised.value)
