"""Fills the tables that Moodle and Canvas give out: cells of these students, and nothing else.

Moodle's worksheet has headings in the language of its site, so its columns are known by their order
and by what is in them. Canvas's gradebook has English ones everywhere. No server has been tried.
"""

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

OURS = re.compile(r"Checked automatically:.*?\(End of what was checked\.\)", re.DOTALL)
DATE = re.compile(r"-|.*\d[:.]\d\d.*")  # as Moodle writes when something was changed
NUMBER = re.compile(r"\d+([.,]\d+)?")
ASSIGNMENT = re.compile(r"(?P<name>.*) \(\d+\)")


class Grade(NamedTuple):
    """What an id gets: points, out of how many, and a text with the reasons."""

    points: float
    possible: float
    comment: str

    def scaled(self, most: str) -> str:
        """The points as a part of another maximum, written as that one is."""
        text = f"{self.points / (self.possible or 1) * number(most):.2f}"
        return text.replace(".", ",") if "," in most else text


class Sheet:
    """A CSV file whose cells can be set while all else stays as it is, byte for byte."""

    def __init__(self, path: Path):
        data = path.read_bytes()
        self.encoding = "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8"
        try:
            text = data.decode(self.encoding)
        except UnicodeDecodeError:
            self.encoding = "latin-1"  # as Excel saves it, nearly
            text = data.decode(self.encoding)
        self.separator = max(",;\t", key=text.partition("\n")[0].count)
        plain = rf"[^{self.separator}\r\n]*"
        cell = re.compile(rf'("(?:[^"]|"")*"|{plain})({self.separator}|\r\n|\r|\n|\Z)')
        self.rows: list[list[str]] = [[]]  # cells as written, each followed by what ends it
        at = 0
        while at < len(text):
            match = cell.match(text, at)
            if not match:
                raise ValueError(f"{path} is no CSV file: {text[at : at + 40]!r}")
            if self.rows[-1] and self.rows[-1][-1] != self.separator:
                self.rows.append([])
            self.rows[-1] += match.groups()
            at = match.end()

    def values(self) -> Iterator[list[str]]:
        """The cells of each row, without quotation marks."""
        for row in self.rows:
            cells = (cell.strip() for cell in row[::2])
            yield [c[1:-1].replace('""', '"') if c.startswith('"') else c for c in cells]

    def set(self, row: int, column: int, value: str) -> None:
        if re.search(rf'[{self.separator}"\r\n]', value):
            value = '"' + value.replace('"', '""') + '"'
        self.rows[row][2 * column] = value

    def save(self, path: Path) -> None:
        text = "".join("".join(row) for row in self.rows)
        path.write_bytes(text.encode(self.encoding, errors="replace"))


def number(text: str, where: str = "") -> float:
    """A number as people and systems write it, with a point or a comma."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise ValueError(f"{where} has {text!r}, expected a number") from None


def moodle(path: Path, grades: Mapping[str, Grade]) -> tuple[Sheet, set[str]]:
    """Moodle's grading worksheet with the grades of these ids; and the ids that are not in it."""
    sheet = Sheet(path)
    _, *table = sheet.values()
    columns = list(zip(*table, strict=False))
    found = [re.search(r"\d+$", cells[0]) for cells in table]
    ids = {match[0]: row for row, match in enumerate(found, 1) if match}
    tops = [
        i
        for i in range(2, len(columns))
        if len({*columns[i]}) == 1
        and NUMBER.fullmatch(columns[i][0])
        and all(cell in ("", "-") or NUMBER.fullmatch(cell) for cell in columns[i - 1])
    ]
    if not tops or len(ids) < len(table):
        raise ValueError(
            f"{path} is not Moodle's grading worksheet: expected a number at the end of each cell "
            "of the first column, and grades to the left of a column with the maximum grade"
        )
    top, comment = tops[-1], len(columns) - 1
    commented = comment > top + 1 and not all(map(DATE.fullmatch, columns[comment]))
    for name, grade in grades.items():
        if name in ids:
            row = ids[name]
            sheet.set(row, top - 1, grade.scaled(columns[top][0]))
            if commented:
                sheet.set(row, comment, _with_ours(columns[comment][row - 1], grade.comment))
    return sheet, {*grades} - {*ids}


def _with_ours(text: str, comment: str) -> str:
    """A cell with our comment in place of an earlier one, or after what somebody else wrote."""
    ours = f"Checked automatically: {comment}\n(End of what was checked.)"
    ours = html.escape(ours, quote=False).replace("\n", "<br>\n")
    whole, replaced = OURS.subn(lambda _: ours, text)
    return whole if replaced else "<br>\n".join(filter(None, [text, ours]))


def canvas(path: Path, grades: Mapping[str, Grade], name: str = "") -> tuple[Sheet, set[str]]:
    """Canvas's gradebook with the grades of these ids; and those that have no free cell in it."""
    sheet = Sheet(path)
    heads, *table = sheet.values()
    own = {head: match["name"] for head in heads if (match := ASSIGNMENT.fullmatch(head))}
    meant = [head for head in own if name in ("", head, own[head])]
    if "ID" not in heads or len(meant) != 1:
        raise ValueError(
            f"{path}: --name was {name!r}, expected one assignment of Canvas's gradebook: "
            f"{', '.join(own.values()) or 'it has none'}"
        )
    column, most, lost = heads.index(meant[0]), "", {*grades}
    for row, values in enumerate(table, 1):
        cells = dict(zip(heads, values, strict=False))
        whose, cell = cells.get("ID", ""), cells.get(meant[0], "N/A")
        if not whose and NUMBER.fullmatch(cell):
            most = cell
        elif most and whose in grades and cell not in ("EX", "N/A"):  # excused, not assigned
            sheet.set(row, column, grades[whose].scaled(most))
            lost.discard(whose)
    return sheet, lost
