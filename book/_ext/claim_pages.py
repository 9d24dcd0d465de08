"""A page for each claim, at its permalink: its card, open, and what the ledger has no room for."""

import textwrap
from collections.abc import Iterator

from sphinx.application import Sphinx

from book._ext import forrt, ledger_page
from book._ext.claims import verdicts
from book._ext.ledger import build
from book._ext.pages import from_template
from book.tools.address import repository
from course.claims import export
from course.claims.cite import bibtex, citation
from course.claims.rows import load


def collect(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    """The name of each page, what the theme shows on it, and the theme's template."""
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


def setup(app: Sphinx) -> None:
    app.connect("html-collect-pages", collect)
