"""A deck for each week of the course, made of what plan, chapters, checks and quiz bank say.

The figures of the session, its verdicts, a formula, the stub of an exercise, a wrong answer with
what its check says, and a question to vote on.
"""

import json
import re

from book.tools.notebooks import cells, tags
from course import exam
from course.claims.rows import BOOK
from course.quiz import Item, bank

PARTS = ("course", "course_second_half", "course_since_2021")
PLAN = "\n".join((BOOK / f"teaching/{n}.md").read_text(encoding="utf-8") for n in PARTS)
WEEKS = re.findall(r"(?m)^(## Week \d+\. (?:.|\n)*?)(?=^# |^## |\Z)", PLAN)
QUESTION = re.compile(r"([^.:;?]+\?)")
READ = re.compile(r"<\.\./(\d\d_\w+)>")
BULLET = re.compile(r"(?m)^- (\d+) min: ((?:.|\n(?!-|\n))+)")
FORMULA = re.compile(r"\$\$((?:(?!\$\$).|\n)+?)(?:\\tag\{[\d.]+\}((?:(?!\$\$).|\n)*?))?\$\$")
NAMES = [f"week_{number}" for number in range(1, len(WEEKS) + 1)]


def plain(text: str) -> str:
    """Without the book's roles and links."""
    text = re.sub(r"\{numref\}`[^`]+`", "the figure", text)
    text = re.sub(r"\{(?!count|measured)\w+\}`([^`<]+?)\s*(?:<[^`]*)?`", r"\1", text)
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)


def slide(title: str, seconds: int, body: str, notes: str) -> str:
    return f"## {title} {{timing={seconds}}}\n\n{body}\n\n::: notes\n{notes}\n:::\n"


def in_class(week: str) -> list[str]:
    """A slide for each part of the session, its question on top; one for each verdict it names."""
    made = []
    for minutes, text in BULLET.findall(week):
        said = re.sub(r"^the figure[.:,] (?:and )?", "", " ".join(plain(text).split()))
        asked = QUESTION.search(said)
        title = (asked[1] if asked else said.partition(". ")[0].rstrip(".")).strip()
        figures = re.findall(r"\{numref\}`([\w-]+)`", text)
        body = f"![](figure:{figures[0]})" if figures else said.replace(title, "").strip(" .")
        made.append(slide(title[0].upper() + title[1:], 60 * int(minutes), body, said))
        for claim in re.findall(r"\{claim\}`(\w+)`", text):
            made.append(slide("A claim, and what came of it", 0, f"{{verdict}}`{claim}`", said))
    return made


def formula(names: list[str]) -> list[str]:
    """The first formula of these chapters that has a line, and the sentence before it."""
    for cell in (cell for name in names for cell in cells(BOOK / f"{name}.ipynb")):
        if "### Exercise" not in cell.source and (found := FORMULA.search(cell.source)):
            tex = " ".join((found[1] + (found[2] or "")).split())
            before = re.sub("<a.*?</a>|(?m:^#.*$)", "", plain(cell.source[: found.start()]))
            last = re.split(r"(?<=[.?:]) ", " ".join(before.split()))[-1]
            body = f"{last}\n\n::: formula\n$${tex}$$\n:::"
            return [slide("The formula", 120, body, "Say every letter and its shape.")]
    return []


def stub(week: str, names: list[str]) -> list[str]:
    """The first exercise after the session, as it stands in the notebook."""
    wanted = re.findall(r"`(\w+)` \(\d+\.\d+, (\d+) min\)", week.partition("**After,")[2])
    stubs = {
        cell.source.split("(")[0].removeprefix("def "): cell.source
        for name in names
        for cell in cells(BOOK / f"{name}.ipynb")
        if "exercise" in tags(cell)
    }
    for name, minutes in wanted:
        if name in stubs:
            code, notes = f"```python\n{stubs[name]}\n```", f"`{name}`, about {minutes} minutes."
            return [slide("Yours to write", 60, code, notes)]
    return []


def wrong(names: list[str]) -> list[str]:
    """A wrong answer from the quiz bank, and what its check says."""
    for item in (item for item in bank() if item.chapter in names and item.exercise):
        message = exam.said(item.exercise, item.code)
        said = f"```python\n{item.code.strip()}\n```\n\n> {message}"
        notes = f"{item.ask} {next(iter(item.answers))} {next(iter(item.answers.values()))}"
        return [slide("What is wrong here? The check says:", 120, said, notes)]
    return []


def vote(item: Item) -> list[str]:
    """A question of the quiz bank; what is right stands in the notes."""
    figure = f"![](figure:{item.figure})\n\n" if item.figure else ""
    code = f"```python\n{item.code.strip()}\n```\n\n" if item.code else ""
    lettered = zip("ABCDE", item.shown, strict=False)
    answers = "\n".join(f"{letter}.  {text}" for letter, text in lettered)
    right, reason = next(iter(item.answers.items()))
    notes = f"Right: {right} {reason} Vote, let neighbours talk for two minutes, vote again."
    return [slide("Vote", 300, f"{item.ask}\n\n{figure}{code}{answers}", notes)]


def deck(name: str) -> str:
    """The Markdown of ``week_N``."""
    week = WEEKS[NAMES.index(name)]
    title = re.match(r"## (.*)", week)[1]
    aim = " ".join(re.search(r"\*\*Aim\.\*\* ((?:.|\n(?!\n))+)", week)[1].split())
    plan = (BOOK / "teaching/plan.md").read_text(encoding="utf-8")
    chosen = re.findall(rf"(?m)^\| {name.removeprefix('week_')} \| `([\w-]+)` \|$", plan)
    names = list(dict.fromkeys(READ.findall(week)))
    mine = [one for one in bank() if one.chapter in names]
    item = next(one for one in mine if one.id in chosen or not (chosen or one.code))
    slides = [*in_class(week), *formula(names), *stub(week, names), *wrong(names), *vote(item)]
    head = f"---\ntitle: {json.dumps(title)}\nsubtitle: {json.dumps(aim)}\n---\n"
    return "\n".join([head, *slides])
