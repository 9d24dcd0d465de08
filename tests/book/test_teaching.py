"""The pages for teachers say nothing of the book that is not so, and plans fit their slots."""

import doctest
import re
from operator import attrgetter

import pytest
import torch
import yaml

import minivit
from book._ext.chapters import length, names, notebook
from book.tools import script
from book.tools.address import ROOT
from book.tools.notebooks import cells, figure_name
from course import exam
from course.check.exercise import EXERCISES
from course.claims.rows import BOOK, load
from course.quiz import bank
from course.results import study

FOLDER = BOOK / "teaching"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
FLAT = {name: " ".join(text.split()) for name, text in PAGES.items()}  # lines joined
ALL = " ".join(FLAT.values())
COURSE = " ".join(FLAT[name] for name in ("course", "course_second_half", "course_since_2021"))
WEEKS = re.split(r"(?=## Week \d)", re.sub(r"# The course: .*?(?=## Week)", "", COURSE))[1:]
NAMED = re.compile(r"`(\w+)` \((\d+)\.(\d+), (\d+) min\)")  # `multi_head` (2.2, 15 min)
READ = re.compile(r"<\.\./(\w+)>` \((core|deeper|reading) (\d+) min\)")
EXERCISE = re.compile(r"### Exercise (\d+):.*?About\s+(\d+)\s+minutes", re.DOTALL)


def test_every_exercise_is_named_with_its_number_and_minutes():
    known = {}  # by its name as checked: chapter, number, minutes
    for number, name in names().items():
        exercise = None
        for cell in cells(notebook(name)):
            if cell.cell_type == "markdown":
                exercise = (EXERCISE.findall(cell.source) or [exercise])[-1]
            for called in re.findall(r"\bcheck\.(\w+)\(", cell.source):
                known[called] = (str(number), *exercise)
    assert set(known) == set(EXERCISES)
    for name, *place in NAMED.findall(ALL):
        assert tuple(place) == known[name], name


def test_the_pages_are_in_the_table_of_contents_and_short():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    (part,) = [part for part in contents["parts"] if part.get("caption") == "For teachers"]
    pages = [page for one in part["chapters"] for page in (one, *one.get("sections", []))]
    here = sorted(page["file"] for page in pages if page["file"] != "book/embed")
    assert here == [f"book/teaching/{name}" for name in PAGES]
    assert all(len(text.splitlines()) <= 200 for text in PAGES.values())


def said_by(*files):
    """The code of checks, in which a sentence that goes over several lines is one."""
    code = " ".join((ROOT / "course/check" / file).read_text(encoding="utf-8") for file in files)
    return " ".join(re.sub(r'"\s*f?"', "", code).split())


def test_every_message_that_is_quoted_is_one_of_the_checks():
    quoted = re.findall(r'`(\w+)`: "([^"]+)"(?: and "([^"]+)")?', ALL)
    assert len(quoted) > 30
    shared = [path.name for path in (ROOT / "course/check").glob("[am]*.py")]
    for name, *sentences in quoted:
        chapter = EXERCISES[name].__module__.rpartition(".")[2]
        text = said_by(f"{chapter}.py", *shared)
        assert all(sentence in text for sentence in sentences), name
    slides = " ".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("slides/*.md"))
    in_notes = re.findall(r'Exercise (\d+)\.\d+: "(.+?)"', " ".join(slides.split()))
    assert len(in_notes) > 10
    for chapter, sentence in in_notes:
        assert sentence in said_by(f"chapter_{int(chapter):02}.py"), sentence


def test_every_claim_figure_and_chapter_there_is_and_takes_the_minutes_below_its_title():
    claims = set(re.findall(r"\{(?:claim|measured)\}`(\w+)`", ALL))
    assert len(claims) > 40 and claims <= set(load().claims)
    figures = {figure_name(cell) for path in BOOK.glob("*.ipynb") for cell in cells(path)}
    assert set(re.findall(r"\{numref\}`([\w-]+)`", ALL)) <= figures
    chapters = {path.stem for path in BOOK.glob("*.*")}
    assert set(re.findall(r"<\.\./([\w/]+)>", ALL)) <= chapters
    for name, part, minutes in READ.findall(ALL):
        part = "core" if part == "reading" else part
        assert int(minutes) == getattr(length(notebook(name)), part), name


def test_the_course_has_twelve_weeks_and_five_whose_minutes_add_up_and_every_chapter():
    assert [int(re.match(r"## Week (\d+)", week)[1]) for week in WEEKS] == list(range(1, 18))
    read = {name for name, part, _ in READ.findall(COURSE) if part != "deeper"}
    assert read == {path.stem for path in BOOK.glob("[0-9]*.ipynb")}
    for week in WEEKS:
        parts = re.findall(r"\*\*(Before|In class|After), (\d+) min.*?\*\*(.*?)(?=\*\*)", week)
        assert [name for name, _, _ in parts] == ["Before", "In class", "After"]
        for name, minutes, text in parts:
            pattern = r"- (\d+) min:" if name == "In class" else r"(\d+) min\)"
            assert sum(map(int, re.findall(pattern, text))) == int(minutes), (week[:10], name)


def test_the_plan_for_eighty_adds_up_and_its_homework_votes_and_exam_belong_to_their_weeks():
    plan = PAGES["plan"]
    for table in re.findall(r"(?m)(?:^\|.*\n)+", plan):
        lines = [row.strip("|\n ").split("|") for row in table.splitlines()]
        rows = [[cell.strip(" *") for cell in line] for line in lines]
        for at in 0, 1:
            cells = [row[at] for row in rows[2:] if len(row) > at]
            if table.count("**") > 1 and cells and all(cell.isdecimal() for cell in cells):
                assert sum(map(int, cells[:-1])) == int(cells[-1]), table
        for row in rows:  # lectures, 12 x 1.5
            if product := re.search(r"(\d+) × ([\d.]+)$", row[0]):
                people = 4 if "four" in row[0] else 1
                assert people * float(product[1]) * float(product[2]) == float(row[1]), row
    forms = re.findall(r"(?m)\| ([\d.]+) \|$", plan.partition("## Shorter forms")[2])
    minutes = re.findall(r"\*\*(?:Before|In class|After), (\d+) min", "".join(WEEKS[:12]))
    seminar = round(sum(map(int, minutes)) / 60)
    assert forms[:2] == ["75", f"{seminar}"] and f"about {seminar} hours" in FLAT["plan"]
    of_week = {int(re.match(r"## Week (\d+)", week)[1]): week for week in WEEKS}
    asked = {week for seed in range(40) for place in exam.places(seed) for week in place["weeks"]}
    by_id = {item.id: item.chapter for item in bank()}
    votes = re.findall(r"(?m)^\| (\d+) \| `([\w-]+)` \|$", plan)
    outcomes = re.findall(r"(?m)^\| (\d+) \| [^|]+ \| (`.*min\)) \| .+ \|$", plan)
    weeks = [[int(week) for week, _ in rows] for rows in (votes, outcomes)]
    assert weeks == [sorted(asked)] * 2 == [sorted(of_week)[:12]] * 2
    for (week, vote), (_, work) in zip(votes, outcomes, strict=True):
        text = of_week[int(week)]
        assert by_id[vote] in text, vote
        assert all(f"{int(c):02}_" in text for _, c, _, _ in NAMED.findall(work)), work


def test_the_clocks_of_the_lecture_are_right():
    clock, sections = 0.0, re.split(r"(?m)^## ", PAGES["lecture"])[1:]
    for number, (text, spoken) in enumerate(zip(sections, script.sections(), strict=True), 1):
        assert abs(clock - int(re.search(r"\(from minute (\d+)\)", text)[1])) < 1
        clock += script.seconds(f"{number}.1-{len(spoken)}") / 60


def test_computations_are_right():
    blocks = re.findall(r"```\n(>>>.*?)```", PAGES["prerequisites"], re.DOTALL)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "prerequisites", None, 0)
    assert len(examples.examples) > 8
    assert doctest.DocTestRunner().run(examples).failed == 0


@pytest.mark.parametrize("seed", range(4))
def test_an_exam_adds_up_and_its_guide_has_the_marks_of_each_question_and_what_checks_say(seed):
    asked = list(exam.places(seed))
    assert len(asked) == 15 and sum(place["points"] for place in asked) == 60
    paper, guide = exam.written("paper", seed), exam.written("marking", seed)
    question = re.compile(r"(?m)^\*\*(\d+)\.\*\* \((\d+) points")
    assert question.findall(paper) == question.findall(guide)
    assert (paper, guide) == (exam.written("paper", seed), exam.written("marking", seed))
    assert {4, 5} <= {week for place in asked for week in place["weeks"]}
    for place in asked:
        marks = re.findall(r"\((\d)(?:;[^)]*| each| without[^)]*)?\)", place["guide"])
        each = 4 if "(1 each)" in place["guide"] else 1
        assert sum(map(int, marks)) * each == place["points"], place["guide"]
        assert place.get("says", "") in place.get("said", "")
    assert "<<" not in paper + guide and not re.search(r"> \*\*verdict\*\*.*:", paper)
    assert paper != exam.written("paper", seed + 1)


def test_the_answers_of_an_exam_by_hand_are_those_of_the_package():
    drawn = [place for seed in range(30) for place in exam.places(seed)]
    shapes = next(place for place in drawn if "393 × 768 = 301,824" in place["guide"])
    model = minivit.create("vit_b_16")
    size = f"{sum(p.numel() for p in model.patch_embedding.parameters()):,}"
    assert size in shapes["guide"] and f"{model.positions.table.numel():,}" in shapes["guide"]
    ways = next(place for place in drawn if place.get("figure") == "fig-le-ways")
    rows = [study("lesions").rows[f"digits: {seed}"] for seed in range(5)]
    assert abs(sum(row["zero"][0] - row["resample"][0] for row in rows) / 5) < 0.02
    assert "zeros cost as much as another image" in ways["guide"]
    norm = next(place for place in drawn if "LayerNorm" in place["ask"])
    lists = re.findall(r"\[([\d, ]+)\]", norm["ask"])[:3]
    given = [[float(n) for n in row.split(",")] for row in lists]
    for eps, count in ((0, 2), (0.1, 3)):
        rows = torch.nn.functional.layer_norm(torch.tensor(given), [3], eps=eps)
        assert len({round(row[2].item(), 2) for row in rows}) == count


def test_what_the_pages_name_of_the_package_is_there():
    for name in set(re.findall(r"`minivit\.([\w.]+)`", ALL)):
        assert attrgetter(name)(minivit) is not None
    assert f"version {minivit.__version__}," in FLAT["errata"]
