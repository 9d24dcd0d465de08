"""A deck for each week of the course, made of what plan, chapters, checks and quiz bank say.

The figures of the session, its verdicts, a formula, the stub of an exercise, a wrong answer with
what its check says, and a question to vote on.
"""

import json
import re

import yaml

from book.tools.notebooks import cells, tags
from course import exam
from course.claims.rows import BOOK
from course.quiz import Item, bank

PARTS = ("course", "course_second_half", "course_since_2021", "plan")
PLAN = "\n".join((BOOK / f"teaching/{n}.md").read_text(encoding="utf-8") for n in PARTS)
WEEKS = re.findall(r"(?m)^(## Week \d+\. (?:.|\n)*?)(?=^# |^## |\Z)", PLAN)
QUESTION = re.compile(r"([^.:;?]+\?)")
READ = re.compile(r"<\.\./(\d\d_\w+)>")
BULLET = re.compile(r"(?m)^- (\d+) min: ((?:.|\n(?!-|\n))+)")
NAMES = [f"week_{number}" for number in range(1, len(WEEKS) + 1)]
TAKEN = yaml.safe_load((BOOK / "teaching/slides/weeks.yml").read_text(encoding="utf-8"))


def plain(text: str) -> str:
    """Without the book's roles and links."""
    text = re.sub(r"\s*\(\{(numref|measured)\}`[^`]+`\)", "", text)
    text = re.sub(r"\{numref\}`[^`]+`", "the figure", text)
    text = re.sub(r"\{(?!count|measured)\w+\}`([^`<]+?)\s*(?:<[^`]*)?`", r"\1", text)
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)


def slide(title: str, seconds: int, body: str, notes: str) -> str:
    title, body = (text[:1].upper() + text[1:] for text in (title, body))
    return f"## {title} {{timing={seconds}}}\n\n{body}\n\n::: notes\n{notes}\n:::\n"


def in_class(week: str) -> list[str]:
    """A slide for each part of the session, its question on top; one for each verdict it names."""
    made = []
    for minutes, text in BULLET.findall(week):
        said = re.sub(r"^the figure[.:,] (?:and )?", "", " ".join(plain(text).split()))
        asked = QUESTION.search(said)
        title = (asked[1] if asked else said.partition(". ")[0].rstrip(".")).strip()
        body = " ".join(said.replace(title, "").split()).strip(" .:;") or f"{minutes} minutes"
        bodies = [body]
        for name in re.findall(r"\{numref\}`([\w-]+)`", text)[:1]:
            bodies = [f"![](figure:{name}{part})" for part in TAKEN["covered"].get(name, [""])]
        for seconds, body in zip((60 * int(minutes), 0), bodies, strict=False):
            made.append(slide(title, seconds, body, said))
        for claim in re.findall(r"\{claim\}`(\w+)`", text):
            made.append(slide("A claim, and what came of it", 0, f"{{verdict}}`{claim}`", said))
    return made


def formula(number: str, names: list[str]) -> str:
    """The formula of that number in these chapters, and what is said before it."""
    sources = (cell.source for name in names for cell in cells(BOOK / f"{name}.ipynb"))
    source = next(text for text in sources if rf"\tag{{{number}}}" in text)
    before, _, tex = source.partition(rf"\tag{{{number}}}")[0].rpartition("$$")
    said = re.sub("<a.*?</a>|(?m:^#.*$)", "", plain(before))
    lead = re.split(r"(?<=[.?:]) (?!Then$)", " ".join(said.split()))[-1]
    body = f"{lead}\n\n::: formula\n$${' '.join(tex.split())}$$\n:::"
    return slide("The formula", 120, body, "Say every letter and its shape.")


def stub(week: str, names: list[str]) -> str:
    """The first exercise after the session, as it stands in the notebook."""
    wanted = re.findall(r"`(\w+)` \(\d+\.\d+, (\d+) min\)", week.partition("**After,")[2])
    stubs = {
        cell.source.split("(")[0].removeprefix("def "): cell.source
        for name in names
        for cell in cells(BOOK / f"{name}.ipynb")
        if "exercise" in tags(cell)
    }
    name, minutes = next(one for one in wanted if one[0] in stubs)
    code = f"```python\n{stubs[name]}\n```"
    return slide("Yours to write", 60, code, f"`{name}`, about {minutes} minutes.")


def wrong(names: list[str]) -> str:
    """A wrong answer from the quiz bank, and what its check says."""
    item = next(item for item in bank() if item.chapter in names and item.exercise)
    said = f"```python\n{item.code.strip()}\n```\n\n> {exam.said(item.exercise, item.code)}"
    notes = f"{item.ask} {' '.join(next(iter(item.answers.items())))}"
    return slide("What is wrong here? The check says:", 120, said, notes)


def vote(item: Item) -> str:
    """A question of the quiz bank; what is right stands in the notes."""
    figure = f"![](figure:{item.figure})\n\n" if item.figure else ""
    code = f"```python\n{item.code.strip()}\n```\n\n" if item.code else ""
    answers = "\n".join(f"{a}.  {text}" for a, text in zip("ABCDE", item.shown, strict=False))
    right, reason = next(iter(item.answers.items()))
    notes = f"Right: {right} {reason} Vote, let neighbours talk for two minutes, vote again."
    return slide("Vote", 300, f"{item.ask}\n\n{figure}{code}{answers}", notes)


def deck(name: str) -> str:
    """The Markdown of ``week_N``."""
    week = WEEKS[at := NAMES.index(name)]
    title = re.match(r"## (.*)", week)[1]
    aim = " ".join(re.search(r"\*\*Aim\.\*\* ((?:.|\n(?!\n))+)", week)[1].split())
    chosen = re.findall(rf"(?m)^\| {name.removeprefix('week_')} \| `([\w-]+)` \|$", PLAN)
    names = list(dict.fromkeys(READ.findall(week)))
    mine = [one for one in bank() if one.chapter in names]
    item = next(one for one in mine if one.id in chosen or not (chosen or one.code))
    head = f"---\ntitle: {json.dumps(title)}\nsubtitle: {json.dumps(aim)}\n---\n"
    own = formula(TAKEN["formulas"][at], names), stub(week, names), wrong(names), vote(item)
    return "\n".join([head, *in_class(week), *own])
