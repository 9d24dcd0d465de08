"""The ledger: the directives ``ledger`` and ``ledger-fields``, and the data beside their page."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
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
    """Every claim by topic, as a card; the sources; the systems that they name."""

    def run(self):
        note_dependencies(self.env)
        rows, found, here = load(), harvest(), build(self.env.app)
        data = {claim["id"]: claim for claim in export.ledger(found, here)["claims"]}
        sections = [nodes.paragraph("", summary(found)), html(ledger_page.filters(found))]
        for name, topic in rows.topics.items():
            section = _section(f"topic-{name}", topic.question)
            claims = [claim for claim in rows.claims.values() if claim.topic == name]
            words = Counter(ledger_page.word(claim.id, found) for claim in claims)
            cards = (
                ledger_page.entry(claim, found.get(claim.id), data[claim.id]) for claim in claims
            )
            section += html(ledger_page.chips(words, "topic-words") + "\n".join(cards))
            sections.append(section)
        return [*sections, self.sources(), self.systems(), html(SCRIPT)]

    def sources(self) -> nodes.section:
        """The five documents, as far as they name themselves."""
        section = _section("sources", "The sources")
        for letter, source in load().sources.items():
            number = sum(name[0] == letter for name in load().claims)
            given = [
                f"{field.capitalize()}: {source[field]}."
                for field in ("author", "date", "address")
                if field in source
            ] or ["It names no author, date or address."]
            term = nodes.term("", f"{letter}: {source['title']}")
            texts = source["about"], f"{' '.join(given)} {number} claims."
            section += _definitions([(term, texts)], ids=[f"source-{letter.lower()}"])
        return section

    def systems(self) -> nodes.section:
        """The models and methods that the sources name."""
        section = _section("systems", "Systems and methods the sources name")
        systems = load().systems.values()
        terms = (nodes.term("", f"{s.id} {s.name}: {s.state}") for s in systems)
        texts = ([system.statement] for system in systems)
        section += _definitions(zip(terms, texts, strict=True), classes=["systems"])
        return section


class LedgerFields(SphinxDirective):
    """What each field of a claim in ``ledger.json`` means, from its schema."""

    def run(self):
        self.env.note_dependency(str(export.SCHEMA))
        schema = json.loads(export.SCHEMA.read_text(encoding="utf-8"))
        fields = schema["properties"]["claims"]["items"]["properties"]
        terms = (nodes.term("", "", nodes.literal("", name)) for name in fields)
        texts = ([field["description"]] for field in fields.values())
        return [_definitions(zip(terms, texts, strict=True), classes=["ledger-fields"])]


def _section(name: str, title: str) -> nodes.section:
    return nodes.section("", nodes.title("", title), ids=[name], names=[name])


def _definitions(
    entries: Iterable[tuple[nodes.term, Iterable[str]]], **attributes: list[str]
) -> nodes.definition_list:
    """A list of terms, each with its paragraphs."""
    listing = nodes.definition_list("", **attributes)
    for term, texts in entries:
        paragraphs = (nodes.paragraph("", text) for text in texts)
        listing += nodes.definition_list_item("", term, nodes.definition("", *paragraphs))
    return listing


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
    app.add_directive("ledger-fields", LedgerFields)
    when_built(app, write)
