"""Finds solutions, and texts for teachers alone, where students read.

A solution is known by its tokens and a text by its words, so that neither line breaks nor a page's
markup hide it. A run of them that is too long for chance counts, unless ``printed.py`` names it.
"""

import ast
import html
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nbformat

from book.tools.address import ROOT
from book.tools.edition.printed import CELLS, FILES
from book.tools.text import text_of

TOKENS = 20  # of code in a row that are no chance; a shorter solution counts as a whole
WORDS = 16  # of prose
# What is written for teachers: answers, and the exam. Their plans may be read by anybody.
FOR_TEACHERS = re.compile(r"book/(solutions/.*|teaching/(exam|questions).*)")
READ = {".html", ".ipynb", ".js", ".json", ".md", ".py", ".txt", ".csv", ".bib", ".yml", ".xml"}


Run = tuple[str, ...]  # tokens or words


class Secret(NamedTuple):
    """What students shall not read."""

    name: str  # of a function, or a page
    code: bool
    parts: Run

    def runs(self) -> set[Run]:
        """Its runs that are too long for chance."""
        return set(runs(self.parts, min(len(self.parts), TOKENS if self.code else WORDS)))


def runs(parts: Run, length: int) -> Iterator[Run]:
    """Every so many parts in a row."""
    return (parts[i : i + length] for i in range(len(parts) - length + 1))


def tokens(code: str) -> Run:
    """Words, numbers and signs."""
    return tuple(re.findall(r"\w+|[^\w\s]", code))


def words(prose: str) -> Run:
    """Words in lower case."""
    return tuple(re.findall(r"[^\W_]+", prose.lower()))


def without_comments(code: str) -> str:
    """Code with the rest of a line gone after each #."""
    return re.sub(r"#.*", "", code)


def solutions(notebook: Path) -> Iterator[Secret]:
    """The bodies of the functions in cells that are tagged as solutions, without docstrings."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if "solution" not in cell.metadata.get("tags", []):
            continue
        lines = cell.source.splitlines()
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                first = node.body[bool(ast.get_docstring(node))]
                body = "\n".join(lines[first.lineno - 1 : node.end_lineno])
                yield Secret(node.name, True, tokens(without_comments(body)))


def prose(page: Path) -> Secret:
    """A page's text; of a notebook, what is no code."""
    if page.suffix == ".ipynb":
        cells = nbformat.read(page, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    else:
        text = page.read_text(encoding="utf-8")
    return Secret(f"{page.parent.name}/{page.stem}", False, words(text))


@cache
def secrets(pages: frozenset[str]) -> tuple[Secret, ...]:
    """Every solution of the book, and the text of those of the pages that are for teachers."""
    notebooks = sorted(ROOT.glob("book/**/*.ipynb"))
    files = [next(ROOT.glob(f"{page}.*")) for page in sorted(pages) if FOR_TEACHERS.match(page)]
    return (*(one for path in notebooks for one in solutions(path)), *map(prose, files))


def readable(file: Path) -> str:
    """What one reads in a file: a notebook's cells and outputs, a page without its tags."""
    text = text_of(file)
    if file.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        data = [o.get("data", {}) for cell in cells for o in cell.get("outputs", [])]
        shown = ["".join(one.get(kind, "")) for one in data for kind in ("text/plain", "text/html")]
        text = "\n".join([*("".join(cell["source"]) for cell in cells), *shown])
        return re.sub(r"base64,[\w+/=]+", "", text)
    if file.suffix == ".html":
        return html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"base64,[\w+/=]+", "", text)))
    return (
        text.replace("\\n", "\n").replace('\\"', '"') if file.suffix in (".js", ".json") else text
    )


@cache
def demonstrated(name: str, stem: str) -> frozenset[Run]:
    """The runs of a solution that a chapter prints itself."""
    found: set[Run] = set()
    for printed in CELLS:
        if (printed.solution, printed.chapter) == (name, stem):
            cells = nbformat.read(ROOT / f"book/{stem}.ipynb", as_version=4).cells
            (secret,) = (one for one in secrets(frozenset()) if one.name == name)
            for code in (cell.source for cell in cells if cell.id in printed.cells):
                found |= secret.runs() & set(runs(tokens(without_comments(code)), TOKENS))
    return frozenset(found)


Known = dict[bool, dict[Run, dict[Run, set[str]]]]  # for code and prose, by a run's beginning


@cache
def known(left_out: frozenset[str]) -> Known:
    """The runs to look for, each with the names of its secrets."""
    table: Known = {kind: defaultdict(lambda: defaultdict(set)) for kind in (True, False)}
    for secret in secrets(left_out):
        for run in secret.runs():
            table[secret.code][run[:3]][run].add(secret.name)
    return table


def met(text: str, table: Known) -> Iterator[tuple[str, Run]]:
    """Each secret that a text has a run of, with the run."""
    opened = re.sub(r"(?m)^\s*#", "", text)  # what was commented out is read all the same
    code = {tokens(without_comments(text)), tokens(without_comments(opened))}
    for is_code, forms in ((True, code), (False, {words(text)})):
        for form in forms:
            for i in range(len(form)):
                for run, names in table[is_code].get(form[i : i + 3], {}).items():
                    if form[i : i + len(run)] == run:
                        yield from ((name, run) for name in names)


def leaks(folder: Path, left_out: frozenset[str]) -> list[str]:
    """Each secret that stands in a file of a folder: one line, which begins with the file's name.

    Args:
        left_out: The pages that students do not get, as the table of contents names them.
    """
    table, problems = known(left_out), []
    for file in sorted(path for path in folder.rglob("*") if path.suffix in READ):
        name, text = file.relative_to(folder).as_posix(), readable(file)
        found = {
            one: run
            for one, run in met(text, table)
            if (one, name) not in FILES and run not in demonstrated(one, file.stem)
        }
        problems += [f"{name}: {one}: {' '.join(run)}" for one, run in sorted(found.items())]
        page = name.removesuffix(file.suffix).removeprefix("_sources/")
        problems += [f"{name}: the page is there"] * (page in left_out)
        if file.name == "searchindex.js":
            listed = sorted(one for one in left_out if f'"{one}"' in text)
            problems += [f"{name}: finds {one}" for one in listed]
    return problems
