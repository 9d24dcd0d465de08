"""Finds solutions, and texts for teachers alone, where students read.

A solution is known by its tokens and a text by its words, so that neither line breaks nor a page's
markup hide it. A run of them that is too long for chance counts, unless ``allowed.yml`` names it.
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

from book.tools import notebooks, portable
from book.tools.address import ROOT
from book.tools.edition.tree import load
from book.tools.gates import text_of

TOKENS = 20  # of code in a row that are no chance; a shorter solution counts as a whole
WORDS = 16  # of prose
# What is written for teachers: answers, and the exam. Their plans may be read by anybody.
FOR_TEACHERS = re.compile(r"book/(solutions/.*|teaching/(exam|questions|quiz).*)")
READ = {".html", ".ipynb", ".js", ".json", ".md", ".py", ".txt", ".csv", ".bib", ".yml", ".xml"}
ALLOWED = load("book/tools/edition/allowed.yml")
EMBEDDED = re.compile(r"base64,[\w+/=]+")

Run = tuple[str, ...]  # tokens or words
Known = dict[bool, dict[Run, dict[Run, set[str]]]]  # for code and prose, by a run's beginning


class Secret(NamedTuple):
    name: str  # of a function, or a page
    code: bool
    parts: Run

    def runs(self) -> set[Run]:
        return runs(self.parts, min(len(self.parts), TOKENS if self.code else WORDS))


def runs(parts: Run, length: int) -> set[Run]:
    return {parts[i : i + length] for i in range(len(parts) - length + 1)}


def tokens(code: str) -> Run:
    """Words, numbers and signs, without comments."""
    return tuple(re.findall(r"\w+|[^\w\s]", re.sub(r"#.*", "", code)))


def words(prose: str) -> Run:
    return tuple(re.findall(r"[^\W_]+", prose.lower()))


def solutions(notebook: Path) -> Iterator[Secret]:
    """The bodies of the functions in cells that are tagged as solutions, without docstrings."""
    for cell in notebooks.cells(notebook):
        if "solution" not in notebooks.tags(cell):
            continue
        lines = cell.source.splitlines()
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                first = node.body[bool(ast.get_docstring(node))]
                body = "\n".join(lines[first.lineno - 1 : node.end_lineno])
                yield Secret(node.name, True, tokens(body))


def text_of_page(page: Path) -> Secret:
    return Secret(f"{page.parent.name}/{page.stem}", False, words(portable.prose(page)))


@cache
def secrets(pages: frozenset[str]) -> tuple[Secret, ...]:
    """Every solution of the book, and the text of those of the pages that are for teachers."""
    files = [next(ROOT.glob(f"{page}.*")) for page in sorted(pages) if FOR_TEACHERS.match(page)]
    in_cells = (s for path in notebooks.of_the_book() for s in solutions(path))
    return (*in_cells, *map(text_of_page, files))


def readable(file: Path) -> str:
    """What one reads in a file: a notebook's cells and outputs, a page without its tags."""
    text = text_of(file)
    if file.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
        shown = ["".join(d.get(kind, "")) for d in data for kind in ("text/plain", "text/html")]
        return EMBEDDED.sub("", "\n".join([*("".join(cell["source"]) for cell in cells), *shown]))
    if file.suffix == ".html":
        return html.unescape(re.sub(r"<[^>]*>", "", EMBEDDED.sub("", text)))
    if file.suffix in (".js", ".json"):
        return text.replace("\\n", "\n").replace('\\"', '"')
    return text


@cache
def demonstrated(name: str, stem: str) -> frozenset[Run]:
    """The runs of a solution that a chapter prints itself."""
    allowed = ALLOWED["cells"].get(name, {}).get(stem)
    if not allowed:
        return frozenset()
    (secret,) = (secret for secret in secrets(frozenset()) if secret.name == name)
    cells = (cell for cell in notebooks.cells(ROOT / f"book/{stem}.ipynb") if cell.id in allowed)
    printed = (runs(tokens(cell.source), TOKENS) for cell in cells)
    return frozenset(secret.runs() & set().union(*printed))


@cache
def known(left_out: frozenset[str]) -> Known:
    """The runs to look for, each with the names of its secrets."""
    table: Known = {kind: defaultdict(lambda: defaultdict(set)) for kind in (True, False)}
    for secret in secrets(left_out):
        for run in secret.runs():
            table[secret.code][run[:3]][run].add(secret.name)
    return table


def matches(text: str, table: Known) -> Iterator[tuple[str, Run]]:
    """Each secret that a text has a run of, with the run."""
    opened = re.sub(r"(?m)^\s*#", "", text)  # what was commented out is read all the same
    for is_code, forms in ((True, {tokens(text), tokens(opened)}), (False, {words(text)})):
        for form in forms:
            for i in range(len(form)):
                for run, names in table[is_code].get(form[i : i + 3], {}).items():
                    if form[i : i + len(run)] == run:
                        yield from ((name, run) for name in names)


def leaks(folder: Path, left_out: frozenset[str]) -> list[str]:
    """A line for each secret in a folder's files; students do not get the pages of ``left_out``."""
    table, problems = known(left_out), []
    for file in sorted(path for path in folder.rglob("*") if path.suffix in READ):
        path, text = file.relative_to(folder).as_posix(), readable(file)
        leaked = {
            name: run
            for name, run in matches(text, table)
            if name not in ALLOWED["files"].get(path, ())
            and run not in demonstrated(name, file.stem)
        }
        problems += [f"{path}: {name}: {' '.join(run)}" for name, run in sorted(leaked.items())]
        page = path.removesuffix(file.suffix).removeprefix("_sources/")
        problems += [f"{path}: the page is there"] * (page in left_out)
        if file.name == "searchindex.js":
            indexed = sorted(page for page in left_out if f'"{page}"' in text)
            problems += [f"{path}: finds {page}" for page in indexed]
    return problems
