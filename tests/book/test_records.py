"""Records for machines, FORRT's chains, which someone else can sign, and the drafts of papers."""

import json
import re
from collections import Counter
from pathlib import Path

import nanopub
import pypandoc
import pytest
from rdflib import URIRef
from rocrate.rocrate import ROCrate

from book._ext import forrt, records
from book._ext.chapters import load_map
from book._ext.claims import counts, verdicts
from book._ext.ledger_page import paper_of
from book.tools.address import ROOT
from course.check.exercise import EXERCISES
from course.claims import export
from course.claims.cite import Build
from course.claims.rows import load
from vitlab.claims.rules import DEPENDS, QUALIFIED, UNCERTAIN

HERE = Build("0123456789ab", "2026-11-27", "https://example.org/")
DATA = export.ledger(verdicts(), HERE)
ROWS = {row["id"]: row for row in DATA["claims"]}
CHAINS = [row for row in ROWS.values() if forrt.has_chain(row)]
STEPS = json.loads(Path(__file__).with_name("forrt_templates.json").read_text())["steps"]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # nanopub's, of rdflib


def written(row, folder):
    """A claim's chain in files, as the site has them."""
    paper = paper_of(load().claims[row["id"]])
    for number, (step, text) in enumerate(forrt.chain(row, paper, HERE, "https://github.com/a/b")):
        (folder / f"{number}_{step}.trig").write_text(text)
    return sorted(folder.glob("*.trig"))


def test_a_word_has_a_status_or_each_of_its_claims_has_one_and_nothing_less_contradicts():
    apart = {name for name, row in ROWS.items() if row["word"] not in forrt.FORRT["words"]}
    assert apart == {*forrt.FORRT["decided"]} and "holds" in forrt.FORRT["words"]
    for name, row in ROWS.items():
        status = forrt.said(row)["status"]
        assert re.fullmatch(r"[\S ]{5,500}\.", row["statement"]), "as an AIDA sentence is"
        assert (status == "Contradicted") == (row["word"] == "refuted"), name
        if name in apart and status == "PartiallySupported":  # an interval on one side of none
            assert row["low"] > 0 or row["high"] < 0, name


@pytest.mark.parametrize(
    "row", {row["word"]: row for row in CHAINS}.values(), ids=lambda r: r["id"]
)
def test_a_chain_is_valid_and_has_what_the_fields_of_its_templates_ask_for(row, tmp_path):
    for path, (step, template) in zip(written(row, tmp_path), STEPS.items(), strict=True):
        link = nanopub.Nanopub(rdf=path)
        assert link.is_valid and not link.source_uri and path.stem.endswith(step)
        assert URIRef(template["template"]) in {*link.pubinfo.objects()}
        for field in template["fields"]:
            values = {*link.assertion.objects(predicate=URIRef(field["predicate"]))}
            assert values or not field["required"], field["id"]
            assert len({*map(str, values)} & {*field.get("values", ())}) == ("values" in field)
            assert all(str(v.datatype) == field["datatype"] for v in values if "datatype" in field)
    relation = URIRef(f"http://purl.org/spar/cito/{forrt.said(row)['relation']}")
    assert (None, relation, URIRef(paper_of(load().claims[row["id"]])["url"])) in link.assertion


def test_the_page_s_lines_sign_a_chain_whose_links_lead_to_signed_ones(tmp_path, monkeypatch):
    page = (ROOT / "book/citing.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    (tmp_path / "V29").mkdir()
    written(ROWS["V29"], tmp_path / "V29")
    profile = nanopub.Profile("https://orcid.org/0000-0000-0000-0000", "Nobody")
    monkeypatch.setattr(nanopub, "load_profile", lambda: profile)
    monkeypatch.chdir(tmp_path)
    exec(snippet, {})
    chain = [nanopub.Nanopub(rdf=path) for path in sorted(tmp_path.glob("signed/*.trig"))]
    assert len(chain) == len(STEPS) and all(link.has_valid_signature for link in chain)
    for before, after in zip(chain[1:], chain[2:], strict=False):
        assert any(before.source_uri in term for triple in after.assertion for term in triple)
    assert not any(forrt.UNSIGNED in str(link) for link in chain)


def test_each_number_of_the_journal_s_draft_is_counted_and_pandoc_finds_its_references():
    word, number = Counter(row["word"] for row in ROWS.values()), counts(verdicts())
    draft = ROOT / "book/papers/jose/paper.md"
    text = draft.read_text(encoding="utf-8").rpartition("---\n")[2].replace("95 %", "")
    assert [int(n) for n in re.findall(r"(?<![@\w])\d+\b", text)] == [
        *(sum(len(part["chapters"]) for part in load_map()["parts"]), len(EXERCISES), len(ROWS)),
        *(word["holds"], sum(word[name] for name in QUALIFIED), word["weaker than claimed"]),
        *(word["the opposite was seen here"], word["refuted"], word[UNCERTAIN] + word[DEPENDS]),
        *(word["cannot be measured here"], word["history, cited"]),
        *(number[n] for n in ("rules", "before", "together", "amended", "intervals", "proofs")),
    ]
    entries = draft.with_suffix(".bib").read_text(encoding="utf-8").strip().split("\n\n")
    assert all(e in (ROOT / "book/references.bib").read_text(encoding="utf-8") for e in entries)
    options = ["--citeproc", f"--resource-path={draft.parent}"]
    html = pypandoc.convert_file(draft, "html", extra_args=options)
    assert html.count('class="csl-entry"') == len(entries) and "???" not in html


def test_the_crate_says_which_command_made_each_file(tmp_path):
    studies = {s["command"]: s["name"] for row in ROWS.values() for s in row["studies"]}
    results = {command: f"_static/results/{name}.json" for command, name in studies.items()}
    for name in (*results.values(), "book/ledger.json", "book/ledger.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    records.crate(DATA, HERE, tmp_path).metadata.write(tmp_path)
    made = ROCrate(tmp_path)
    assert made.root_dataset["datePublished"] == HERE.date and made.name and made.license
    assert {file.id for file in made.data_entities} == {"book/ledger.json", *results.values()}
    actions = made.get_by_type("CreateAction")
    assert {a["name"]: result.id for a in actions for result in a["result"]} == results
