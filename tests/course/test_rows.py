"""The rows of claims.yml: what each must have, and what is refused."""

import re

import pytest
import yaml
from pybtex.database import parse_file
from pybtex.richtext import Text

from course.claims.rows import BOOK, load
from course.results import study
from vitlab.claims.rules import NO

CLAIM = {"id": "R01", "chapter": "02_attention", "basis": "measured", "scale": "small"}
CLAIM |= {"statement": "Cats are grey.", "measure": "Colour of cats.", "topic": "cats"}
FILE = {
    "sources": {"R": {"title": "t", "about": "a"}},
    "chapters": {"02_attention": "Attention", "03_positions": "Positions"},
    "topics": {"cats": {"question": "What is a cat?", "part": "animals"}},
    "systems": [],
}
REFUTES = {"rule": {"< 1": "holds", "otherwise": "refuted"}}
WRONG = [
    ({"chapter": "99_cats"}, "99_cats"), ({"also": ["99_cats"]}, "99_cats"),
    ({"also": ["02_attention"]}, "02_attention owns it"), ({"id": "Q01"}, "no known source"),
    ({"basis": "guessed"}, "'guessed'"), ({"colour": "grey"}, "colour"), ({"topic": "dogs"}, "'dogs'"),
    ({"amended": [{"was": "holds if < 2"}]}, "'when' and 'because'"), (REFUTES, "refutes nothing"),
    ({"rule": {"always": "holds"}}, "'holds' needs a value"),
]  # fmt: skip


def rows(tmp_path, *claims):
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yml"
    path.write_text(yaml.safe_dump(FILE | {"claims": list(claims)}))
    return load(path)


def test_the_book_keeps_every_claim_and_system_of_its_sources():
    count = {"R": 86, "H": 40, "C": 22, "V": 36, "L": 22}
    names = [f"{s}{i:02d}" for s, n in count.items() for i in range(1, n + 1)]
    assert list(load().of_documents()) == names == list(load().claims)[: len(names)]
    assert list(load().systems) == [*(f"S{i:02d}" for i in range(1, 50)), "S60"]
    assert len(load().chapters) == 28
    statements = [claim.statement for claim in load().claims.values()]
    assert len(set(statements)) == len(statements)
    assert all(40 <= len(statement) <= 330 for statement in statements)


def test_a_row_is_read_with_its_rule_and_one_that_is_wrong_is_named(tmp_path):
    rule = {"< 1": "holds", "otherwise": "weaker than claimed"}
    claim = rows(tmp_path, CLAIM | {"rule": rule, "also": ["03_positions"]}).claims["R01"]
    assert claim.also == ("03_positions",) and claim.rule.apply(0.5) == "holds"
    for scale in ("exact", "source"):
        assert rows(tmp_path, CLAIM | REFUTES | {"scale": scale}).claims["R01"].rule
    for change, reason in WRONG:
        wrong = CLAIM | change
        with pytest.raises(ValueError, match=f"claim {wrong['id']}: .*{reason}"):
            rows(tmp_path, wrong)
    with pytest.raises(ValueError, match="claim R01: stands twice"):
        rows(tmp_path, CLAIM, CLAIM | {"chapter": "03_positions"})


JUDGED = [claim for claim in load().claims.values() if claim.rule]
PRONOUN = r"(it|its|they|them|this|that|these|those|so|and|but|nor)\b"


def begins_with_a_pronoun(claim):
    verdicts = [*(verdict for *_, verdict in claim.rule.cases), claim.rule.otherwise]
    return any(re.match(PRONOUN, v.partition(": ")[2], re.I) for v in verdicts)


def paper(claim):
    return claim.of.get("paper") or claim.of.get("nearest")


# What a claim lacks, and how that is seen.
LACKS = {
    "its place in the source": lambda claim: not claim.place,
    "a paper, or why it has none": lambda claim: bool(paper(claim)) == bool(claim.of.get("none")),
    "a section, or that it was not read, and where": lambda c: paper(c) and not (c.of.get("section") and c.of.get("read")),
    "when its rule was written": lambda claim: not claim.since,
    "a reason for its thresholds": lambda c: c.rule.measures and len(c.because) <= 30,
    "models and data of its figure": lambda claim: claim.rule.measures and not claim.setting,
    "why it cannot say yes, and nothing else": lambda c: bool(c.one_sided) != (c.rule.measures and "holds" not in c.rule.words),
    "why it cannot say no, and nothing else": lambda c: bool(c.floor) != (c.rule.measures and not c.rule.words & {*NO}),
    "verdicts that stand alone": begins_with_a_pronoun,
    "the results behind its figure": lambda c: not all(study(name).rows for name in c.study),
}  # fmt: skip


@pytest.mark.parametrize("lack", LACKS)
def test_no_claim_lacks(lack):
    assert [claim.id for claim in JUDGED if LACKS[lack](claim)] == []


def test_papers_are_those_of_the_references_and_each_was_read_somewhere():
    references = parse_file(str(BOOK / "references.bib")).entries
    assert {paper(claim) for claim in JUDGED} - {None} == load().papers.keys()
    for key, said in load().papers.items():
        row = references[key]
        names = [" ".join(p.prelast_names + p.last_names) for p in row.persons["author"]]
        title, *names = (str(Text.from_latex(x)).casefold() for x in (row.fields["title"], *names))
        assert (title, row.fields["year"]) == (said["title"].casefold(), str(said["year"])), key
        authors = said["authors"].casefold().split(", ")
        assert len(authors) == len(names) and all(map(str.endswith, authors, names)), key
        numbers = {row.fields.get("eprint"), row.fields.get("doi")} - {None}
        assert said["read"] and numbers <= {said.get("arxiv"), said.get("doi")}, key


def test_hours_names_what_cannot_be_measured_and_nothing_that_is_read_at_other_ends():
    text = (BOOK.parent / "studies/hours.md").read_text(encoding="utf-8")
    unread, cannot = (set(re.findall(r"\b[RHCVL]\d\d\b", part)) for part in text.split("\n## ")[1:])
    claims = load().of_documents().items()
    words = {n: str(c.rule) for n, c in claims if c.study or c.chapter.startswith("09")}
    assert cannot == {n for n, rule in words.items() if rule == "always cannot be measured here"}
    assert not any(load().claims[name].comparative for name in unread)
