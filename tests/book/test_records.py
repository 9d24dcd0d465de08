"""FORRT's chains: what they must have, and that someone else can sign them."""

import json
import re

import nanopub
import pytest
from rdflib import URIRef

from book._ext import forrt
from book._ext.claims import verdicts
from book._ext.ledger_page import paper_of
from book.tools.address import ROOT
from course.claims import export
from course.claims.rows import load
from tests.course.test_export import BUILD
from vitlab.claims.rules import NO

ROWS = {row["id"]: row for row in export.ledger(verdicts(), BUILD)["claims"]}
CHAINS = {row["word"]: row["id"] for row in ROWS.values() if forrt.has_chain(row)}
STEPS = json.loads((ROOT / "tests/book/forrt_templates.json").read_text())["steps"]
PROFILE = nanopub.Profile("https://orcid.org/0000-0000-0000-0000", "Nobody")


def test_a_word_has_a_status_or_each_of_its_claims_has_one_and_nothing_less_contradicts():
    apart = {name for name, row in ROWS.items() if row["word"] not in forrt.FORRT["words"]}
    assert apart == {*forrt.FORRT["decided"]} and "holds" in forrt.FORRT["words"]
    for name, row in ROWS.items():
        assert re.fullmatch(r"[\S ]{5,500}\.", row["statement"]), "as an AIDA sentence is"
        status = forrt.said(row)["status"]
        assert (status == "Contradicted") == (row["word"] == "refuted"), name
        if name in apart and status == "PartiallySupported":  # an interval on one side of none
            assert row["low"] > 0 or row["high"] < 0, name
            words = (*NO, "too uncertain to tell")  # which no end of training gives
            assert not any(word in row["verdict"] for word in words), name


@pytest.mark.parametrize("name", CHAINS.values())
def test_a_chain_has_what_its_templates_ask_for_and_the_page_s_lines_sign_it(
    name, tmp_path, monkeypatch
):
    (tmp_path / name).mkdir()
    chain = forrt.chain(ROWS[name], paper_of(load().claims[name]), BUILD, "https://example.org/")
    for (step, text), (named, template) in zip(chain, STEPS.items(), strict=True):
        (path := tmp_path / name / f"{[*STEPS].index(step)}_{step}.trig").write_text(text)
        link = nanopub.Nanopub(rdf=path)
        assert link.is_valid and not link.source_uri and step == named
        assert URIRef(template["template"]) in {*link.pubinfo.objects()}
        for field in template["fields"]:
            values = {*map(str, link.assertion.objects(predicate=URIRef(field["predicate"])))}
            assert values or not field["required"], field["id"]
            assert len(values & {*field.get("values", ())}) == ("values" in field)
    relation = URIRef(f"http://purl.org/spar/cito/{forrt.said(ROWS[name])['relation']}")
    assert (None, relation, None) in link.assertion

    page = (ROOT / "book/citing.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nanopub, "load_profile", lambda: PROFILE)
    exec(snippet.replace("V29", name), {})
    signed = [nanopub.Nanopub(rdf=path) for path in (tmp_path / "signed").iterdir()]
    assert len(signed) == len(STEPS) and all(link.has_valid_signature for link in signed)
    assert not any(forrt.UNSIGNED in str(link) for link in signed), "each leads to signed ones"
