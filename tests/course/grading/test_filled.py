"""The tables that Moodle and Canvas gave out are filled, in any language, and nothing else changes."""

import pytest

from course.grading import filled
from course.grading.filled import Grade

GRADES = {
    "5001": Grade(25, 50, "25 of 50\nx < y"),
    "5003": Grade(50, 50, "all"),
    "9": Grade(1, 1, ""),
}
ENGLISH = (
    'Identifier,"Full name",Status,Grade,"Maximum Grade","Last modified (grade)","Feedback comments"\r\n'
    'Participant 5001,"Müller, Anna",Submitted,,100.00,-,\r\n'
    'Participant 5002,"Ben ""B"" O\'Neil",Nothing,,100.00,-,"kept, as it is"\r\n'
    'Participant 5003,Cy,Submitted,40.00,100.00,"Friday, 27 November 2026, 9:53 AM",By hand.'
)
GERMAN = (
    "\ufeffID;Vollständiger Name;Matrikelnummer;Status;Bewertung;Beste Bewertung;"
    "Zuletzt geändert (Bewertung);Feedback als Kommentar\n"
    "Teilnehmer/in5001;Anna Müller;7;Abgegeben;;50,00;-;\n"
    "Teilnehmer/in5003;Cy;7;Abgegeben;12,50;50,00;-;\n"
)
OURS = "Checked automatically: {}<br>\n(End of what was checked.)"
FIRST, THIRD = OURS.format("25 of 50<br>\nx &lt; y"), OURS.format("all")
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,02 attention (70),03 positions (71),Final Score\n"
    ",,,,,Manual Posting,,\n    Points Possible,,,,,10.00,20.00,(read only)\n"
    '"Müller, Anna",5001,,am,A,3,,50.00\n"Roe, R",5003,,rr,A,,EX,0.0\n"Test",8,,t,A,,N/A,\n'
)


@pytest.mark.parametrize(("text", "cells"), [
    (ENGLISH, {"Submitted,,100.00,-,\r": f'Submitted,50.00,100.00,-,"{FIRST}"\r',
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
    with pytest.raises(
        ValueError, match="'', expected one assignment .* 02 attention, 03 positions"
    ):
        filled.canvas(path, {})


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", ENGLISH.replace("100.00", "Good"), '"a\n', CANVAS]
)
def test_what_is_no_worksheet_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "given.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="is not Moodle's|is no CSV") as raised:
        filled.moodle(tmp_path / "given.csv", {})
    assert "\n" not in str(raised.value)
