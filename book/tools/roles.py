"""MyST's roles and labels as plain Markdown that every front end follows, and the way back."""

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pybtex.database import parse_file
from pybtex.richtext import Text

from book.tools import notebooks
from book.tools.address import ROOT
from book.tools.notebooks import figure_name

BOOK = ROOT / "book"
EQUATION = re.compile(r"\$\$((?:(?!\$\$).)*?)\$\$ *\((eq-[\w-]+)\)", re.DOTALL)
TAGGED = re.compile(
    r'<a id="(eq-[\w-]+)"></a>\n\n\$\$((?:(?!\$\$).)*?)\s*\\tag\{[\d.]+\} *\$\$', re.DOTALL
)
LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
ANCHOR = re.compile(r'^<a id="((?!eq-|fig-)[\w-]+)"></a>\n$', re.MULTILINE)
WORK = r'\[[^\]]+\]\([^ )]+\s"(\w+)"\)'  # a paper's link, whose title is its key
# What a link becomes when Sphinx reads it; their order matters.
ROLES: list[tuple[str, str | Callable[[re.Match], str]]] = [
    (r"\[(\w+)\]\((?:\.\./)?ledger\.md#\1\)", r"{claim}`\1`"),
    (r"\[\([\d.]+\)\]\([\w./]*#(eq-[\w-]+)\)", r"{eq}`\1`"),
    (r"\[Fig\. [\d.]+\]\([\w./]*#(fig-[\w-]+)\)", r"{numref}`\1`"),
    (rf"\({WORK}(?:;\s{WORK})*\)", lambda m: f"{{cite:p}}`{','.join(re.findall(WORK, m[0]))}`"),
    (r'\[[^\][]+\s\(\d{4}\w?\)\]\([^ )]+\s"(\w+)"\)', r"{cite:t}`\1`"),
    (r"(?<!!)\[([^\][]+)\]\([\w./]*#([\w-]+)\)", r"{ref}`\1 <\2>`"),
    (r"(?<!!)\[([^\][]+)\]\(((?:\.\./)*(?:\w+/)*\w+)\.(?:ipynb|md)\)", r"{doc}`\1 <\2>`"),
]


class Place(NamedTuple):
    """Where a figure, an equation or another labelled place is, and its number."""

    page: Path
    number: str = ""


@cache
def places() -> dict[str, Place]:
    """By label, all places of the book that a notebook can point to."""
    found, counts = {}, {"eq": 0, "fig": 0}
    for path in notebooks.of_the_book():
        numbered = re.match(r"(?!00)(\d+)_", path.name) and path.parent == BOOK
        own = {"eq": 0, "fig": 0} if numbered else counts  # pages without a number count on
        for cell in notebooks.cells(path):
            names = [figure_name(cell)] if figure_name(cell) else []
            if cell.cell_type == "markdown":
                source = roles(cell.source)
                names = [match[2] for match in EQUATION.finditer(source)]
                found |= {label: Place(path) for label in LABEL.findall(source)}
            for name in names:
                kind = name.partition("-")[0]
                own[kind] += 1
                chapter = f"{int(path.name[:2])}." if numbered else ""
                found[name] = Place(path, f"{chapter}{own[kind]}")
    for path in [ROOT / "index.md", *BOOK.glob("*.md")]:
        found |= {label: Place(path) for label in LABEL.findall(path.read_text(encoding="utf-8"))}
    return found


@cache
def works() -> dict[str, tuple[str, str, str]]:
    """The papers of ``book/references.bib`` by key: authors as cited, year, and where it is."""
    found = {}
    for key, entry in parse_file(BOOK / "references.bib").entries.items():
        people = [" ".join([*p.prelast_names, *p.last_names]) for p in entry.persons["author"]]
        people = [str(Text.from_latex(name)) for name in people]
        authors = f"{people[0]} *et al.*" if len(people) > 2 else " and ".join(people)
        starts = {"url": "", "doi": "https://doi.org/", "eprint": "https://arxiv.org/abs/"}
        fields = entry.fields
        links = [start + fields[name] for name, start in starts.items() if name in fields]
        address = [f"references.md#{key}", *links][-1].replace("(", "%28").replace(")", "%29")
        found[key] = authors, fields["year"], address
    return found


def plain(text: str, page: Path) -> str:
    """MyST's roles and labels as links that every front end follows."""

    def to(target: Path, anchor: str = "") -> str:
        path = os.path.relpath(target, page.parent) if target != page else ""
        return path + (f"#{anchor}" if anchor else "")

    def place(label: str, words: str) -> str:
        where = places()[label]
        return f"[{words.format(where.number)}]({to(where.page, label)})"

    def document(match: re.Match) -> str:
        target = (page.parent / match[2]).resolve()
        suffix = ".ipynb" if target.with_suffix(".ipynb").exists() else ".md"
        return f"[{match[1]}]({to(target.with_suffix(suffix))})"

    def work(key: str, form: str) -> str:
        authors, year, address = works()[key]
        where = to(BOOK / "references.md", key) if address.startswith("references.md") else address
        return f'[{form.format(authors, year)}]({where} "{key}")'

    def together(match: re.Match) -> str:
        return f"({'; '.join(work(key.strip(), '{}, {}') for key in match[1].split(','))})"

    links: list[tuple[str, Callable[[re.Match], str]]] = [
        (r"\{claim\}`(\w+)`", lambda m: f"[{m[1]}]({to(BOOK / 'ledger.md', m[1])})"),
        (r"\{doc\}`([^`<]+?)\s*<([\w./-]+)>`", document),
        (r"\{eq\}`([\w-]+)`", lambda m: place(m[1], "({})")),
        (r"\{numref\}`([\w-]+)`", lambda m: place(m[1], "Fig. {}")),
        (r"\{ref\}`([^`<]+?)\s*<([\w-]+)>`", lambda m: place(m[2], m[1])),
        (r"\{cite:p\}`([\w,\s]+)`", together),
        (r"\{cite:t\}`(\w+)`", lambda m: work(m[1], "{} ({})")),
    ]
    for pattern, link in links:
        text = re.sub(pattern, link, text)
    text = EQUATION.sub(
        lambda m: f'<a id="{m[2]}"></a>\n\n$${m[1].rstrip()} \\tag{{{places()[m[2]].number}}} $$',
        text,
    )
    return LABEL.sub(r'<a id="\1"></a>\n', text)


def roles(text: str) -> str:
    """Plain Markdown with MyST's roles and labels, the other way round."""
    for pattern, role in ROLES:
        text = re.sub(pattern, role, text)
    text = TAGGED.sub(r"$$\2 $$ (\1)", text)
    return ANCHOR.sub(r"(\1)=", text)
