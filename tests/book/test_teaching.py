"""The pages for teachers say nothing of the book that is not so, and plans fit their slots."""

import ast
import doctest
import functools
import re
from operator import attrgetter

import nbformat
import pytest
import yaml

import minivit
from book._ext.chapters import length, names, notebook
from course import check
from course.check.exercise import EXERCISES
from course.claims.rows import BOOK, load

FOLDER = BOOK / "teaching"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
FLAT = {name: " ".join(text.split()) for name, text in PAGES.items()}  # lines joined
ALL = " ".join(FLAT.values())
COURSE = FLAT["course"] + " " + FLAT["course_second_half"]
WEEKS = re.split(r"(?=## Week \d)", COURSE.replace("# The course: weeks 7 to 12", ""))[1:]
NAMED = re.compile(r"`(\w+)` \((\d+)\.(\d+), (\d+) min\)")  # `multi_head` (2.2, 15 min)
READ = re.compile(r"<\.\./(\w+)>` \((core|deeper|reading) (\d+) min\)")
WORDS_A_MINUTE = 130
SLOT = 45  # minutes of a lecture


def headings():
    """Number and minutes of each exercise: its name as checked -> (chapter, number, minutes)."""
    found = {}
    for number, name in names().items():
        exercise = None
        for cell in nbformat.read(notebook(name), as_version=4).cells:
            if cell.cell_type == "markdown":
                asked = re.findall(
                    r"### Exercise (\d+):.*?About\s+(\d+)\s+minutes", cell.source, re.DOTALL
                )
                exercise = asked[-1] if asked else exercise
            for called in re.findall(r"\bcheck\.(\w+)\(", cell.source):
                found[called] = (str(number), *exercise)
    return found


@functools.cache
def messages(exercise):
    """All texts of the chapter's checks, and of what they share."""
    chapter = EXERCISES[exercise].__module__.rpartition(".")[2]
    files = [BOOK.parent / f"course/check/{chapter}.py", *(BOOK.parent / "course/check").glob("[am]*.py")]
    return [
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_the_pages_are_in_the_table_of_contents_and_short():
    contents = yaml.safe_load((BOOK.parent / "_toc.yml").read_text(encoding="utf-8"))
    (part,) = [part for part in contents["parts"] if part["caption"] == "For teachers"]
    listed = {chapter["file"].rpartition("/")[2] for chapter in part["chapters"]}
    assert listed == set(PAGES)
    assert all(len(text.splitlines()) <= 200 for text in PAGES.values())


def test_every_exercise_is_named_with_its_number_and_minutes():
    known = headings()
    assert set(known) == set(EXERCISES)
    for name, *place in NAMED.findall(ALL):
        assert tuple(place) == known[name], name


def test_every_message_that_is_quoted_is_one_of_the_checks():
    quoted = re.findall(r'`(\w+)`: "([^"]+)"(?: and "([^"]+)")?', ALL)
    assert len(quoted) > 30
    for name, *sentences in quoted:
        for sentence in filter(None, sentences):
            assert any(sentence in text for text in messages(name)), (name, sentence)


def test_every_claim_and_figure_there_is():
    claims = set(re.findall(r"\{(?:claim|measured)\}`(\w+)`", ALL))
    assert len(claims) > 50 and claims <= set(load().claims)
    captions = {
        cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        for path in BOOK.glob("*.ipynb")
        for cell in nbformat.read(path, as_version=4).cells
    }
    assert set(re.findall(r"\{numref\}`([\w-]+)`", ALL)) <= captions


def test_chapters_there_are_take_the_minutes_below_their_titles():
    chapters = {path.stem for path in BOOK.glob("*.*")}
    assert set(re.findall(r"<\.\./([\w/]+)>", ALL)) <= chapters
    for name, part, minutes in READ.findall(ALL):
        part = "core" if part == "reading" else part
        assert int(minutes) == getattr(length(notebook(name)), part), name


def test_the_course_has_twelve_weeks_and_every_chapter():
    assert [int(re.match(r"## Week (\d+)", week)[1]) for week in WEEKS] == list(range(1, 13))
    read = {name for name, part, _ in READ.findall(COURSE) if part != "deeper"}
    assert read == {path.stem for path in BOOK.glob("[0-9]*.ipynb")}


@pytest.mark.parametrize("week", WEEKS, ids=lambda week: week[3:10])
def test_the_minutes_of_a_week_add_up(week):
    parts = re.findall(r"\*\*(Before|In class|After), (\d+) min.*?\*\*(.*?)(?=\*\*)", week)
    assert [name for name, _, _ in parts] == ["Before", "In class", "After"]
    for name, minutes, text in parts:
        pattern = r"- (\d+) min:" if name == "In class" else r"(\d+) min\)"
        assert sum(map(int, re.findall(pattern, text))) == int(minutes), name
