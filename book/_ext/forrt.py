"""What the ledger says in the words of FORRT's replication chains, and these, to be signed."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_plus

import yaml

from book._ext.pages import from_template
from course.claims.cite import Build
from course.claims.rows import BASES, BOOK, SCALES

FORRT = yaml.safe_load((BOOK / "ledger/forrt.yml").read_text(encoding="utf-8"))
UNSIGNED = "http://purl.org/nanopub/temp/"  # where nanopublications are before they are signed


def said(row: dict[str, Any]) -> dict[str, str]:
    """The ``status`` of a claim of ``ledger.json``, the ``relation`` that cites it, ``because``."""
    found = FORRT["decided"].get(row["id"]) or FORRT["words"][row["word"]]
    return found | {"relation": FORRT["relations"][found["status"]]}


def has_chain(row: dict[str, Any]) -> bool:
    """Whether a claim is one of a paper, and was tested."""
    return "paper" in row["of"] and said(row)["status"] != "NotTested"


def chain(
    row: dict[str, Any], paper: dict[str, Any], here: Build, repository: str
) -> Iterator[tuple[str, str]]:
    """The steps of a claim's chain and their nanopublications in TriG, in the order of signing.

    The first link, a quotation from the paper, is left to who signs: the ledger quotes none.
    """
    from nanopub import Nanopub  # a second to import, for a site with an address alone
    from rdflib import ConjunctiveGraph

    values = FORRT | row | {"paper": paper, "here": here, "repository": repository}
    values |= {"said": said(row), "bases": BASES, "scales": SCALES, "quote": quote_plus}
    values |= {"own": f"{UNSIGNED}minivit-{row['id']}-"}
    for step in FORRT["templates"]:
        text = from_template("forrt.trig", step=step, **values)
        graph = ConjunctiveGraph().parse(data=text, format="trig")
        if (made := Nanopub(rdf=graph)).is_valid:  # or raises MalformedNanopubError
            yield step, made.rdf.serialize(format="trig")
