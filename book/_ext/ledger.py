"""The ledger: its directive, the data beside its page, and a page for each claim."""

import json
import shutil
import subprocess
import textwrap
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book._ext import forrt, ledger_page
from book._ext.claims import note_dependencies, summary, verdicts
from book._ext.pages import from_template, html, when_built
from book.tools.address import git, repository
from course.claims import export
from course.claims.cite import Build, bibtex, citation
from course.claims.rows import load
from course.results import RESULTS

SCRIPT = '<script defer src="../_static/ledger.js"></script>'


@cache
def commit() -> tuple[str, str]:
    """The commit that is built, with a + where files were changed, and its day."""
    try:
        name = git("describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=12")
        return name.decode().strip(), git("log", "-1", "--format=%cs").decode().strip()
    except (OSError, subprocess.CalledProcessError):
        return "", ""


def build(app: Sphinx) -> Build:
    return Build(*commit(), site=app.config.html_baseurl)


class Ledger(SphinxDirective):
    """Every claim by topic, as a card, and the sources."""

    def run(self):
        note_dependencies(self.env)
        rows, found, here = load(), verdicts(), build(self.env.app)
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


def pages(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    """Each claim's page at its permalink: its name, what the theme shows on it, and a template.

    It has the claim's card, open, and what the ledger has no room for.
    """
    here = build(app)
    for data in export.ledger(verdicts(), here)["claims"]:
        claim, page = load().claims[data["id"]], ledger_page.page_of(data["id"])
        card = ledger_page.entry(claim, verdicts().get(claim.id), data, page)
        values = {"claim": claim, "data": data, "build": here, "book": citation()}
        values |= {"paper": ledger_page.paper_of(claim), "source": load().sources[claim.id[0]]}
        values |= {"said": forrt.said(data), "has_chain": forrt.has_chain(data)}
        values |= {"steps": forrt.FORRT["templates"], "repository": repository()}
        context = {
            "title": f"Claim {claim.id}",
            "description": textwrap.shorten(f"{data['word']}: {claim.statement}", 250),
            "body": from_template("claim.html", card=card, bibtex=bibtex(data, here), **values),
            "metatags": from_template("claim_head.html", **values),
        }
        yield page, context, "page.html"


def write(app: Sphinx) -> None:
    """Writes the ledger's data, and the results of studies that it names."""
    out, here = Path(app.outdir), build(app)
    data = export.ledger(verdicts(), here)
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
    app.connect("html-collect-pages", pages)
    when_built(app, write)
