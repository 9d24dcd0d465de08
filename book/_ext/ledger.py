"""The ledger: its directive, and the data beside its page."""

import json
import shutil
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book._ext import ledger_page
from book._ext.claims import note_dependencies, summary
from book._ext.pages import html, when_built
from book.tools.address import git
from course.claims import export
from course.claims.cite import Build, bibtex
from course.claims.ledger import harvest
from course.claims.rows import load
from course.results import RESULTS

SCRIPT = f'<script defer src="{ledger_page.relative("_static/ledger.js")}"></script>'


@cache
def commit() -> tuple[str, str]:
    """The commit that is built, with a + where files were changed, and its day."""
    try:
        name, day = git("log", "-1", "--format=%h %cs", "--abbrev=12").decode().split()
        changed = git("status", "--porcelain", "--untracked-files=no").strip()
    except (OSError, subprocess.CalledProcessError):
        return "", ""
    return name + "+" * bool(changed), day


def build(app: Sphinx) -> Build:
    return Build(*commit(), site=app.config.html_baseurl)


class Ledger(SphinxDirective):
    """Every claim by topic, as a card, and the sources."""

    def run(self):
        note_dependencies(self.env)
        rows, found, here = load(), harvest(), build(self.env.app)
        data = {claim["id"]: claim for claim in export.ledger(found, here)["claims"]}
        sections = [nodes.paragraph("", summary(found)), html(ledger_page.filters(found))]
        for name, topic in rows.topics.items():
            section = _section(f"topic-{name}", topic["question"])
            claims = [claim for claim in rows.claims.values() if claim.topic == name]
            words = Counter(ledger_page.word(claim.id, found) for claim in claims)
            cards = (ledger_page.entry(c, found.get(c.id), data[c.id]) for c in claims)
            section += html(ledger_page.chips(words, "topic-words") + "\n".join(cards))
            sections.append(section)
        return [*sections, self.sources(), html(SCRIPT)]

    def sources(self) -> nodes.section:
        """The five documents, as far as they name themselves, and what later papers are asked."""
        section = _section("sources", "The sources")
        for letter, source in load().sources.items():
            number = sum(name[0] == letter for name in load().claims)
            given = [
                f"{field.capitalize()}: {source[field]}."
                for field in ("author", "date", "address")
                if field in source
            ] or [source.get("later", "It names no author, date or address.")]
            term = nodes.term("", f"{letter}: {source['title']}")
            texts = source["about"], f"{' '.join(given)} {number} claims."
            said = nodes.definition("", *(nodes.paragraph("", text) for text in texts))
            item = nodes.definition_list_item("", term, said)
            section += nodes.definition_list("", item, ids=[f"source-{letter.lower()}"])
        return section


def _section(name: str, title: str) -> nodes.section:
    return nodes.section("", nodes.title("", title), ids=[name], names=[name])


def write(app: Sphinx) -> None:
    """Writes the ledger's data, and the results of studies that it names."""
    out, here = Path(app.outdir), build(app)
    data = export.ledger(harvest(), here)
    texts = {
        "ledger.json": json.dumps(data, ensure_ascii=False, indent=1) + "\n",
        "ledger.csv": export.table(data),
        "ledger.bib": "\n".join(bibtex(claim, here) for claim in data["claims"]),
        "ledger.schema.json": export.SCHEMA.read_text(encoding="utf-8"),
    }
    for name, text in texts.items():
        (out / "book" / name).write_text(text, encoding="utf-8")
    results = out / "_static/results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    for name in {name for claim in load().claims.values() for name in claim.study}:
        shutil.copy(RESULTS / f"{name}.json", results)


def setup(app: Sphinx) -> None:
    app.add_directive("ledger", Ledger)
    when_built(app, write)
