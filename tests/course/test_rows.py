import re

import pytest
import yaml

from course.claims.rows import Claim, load
from course.results import study

CLAIM = {
    "id": "R01",
    "chapter": "02_attention",
    "basis": "measured",
    "scale": "small",
    "statement": "Cats are grey.",
    "measure": "Colour of cats.",
    "topic": "cats",
}
RULE = {"< 1": "holds", "otherwise": "weaker than claimed"}


def rows(tmp_path, *claims):
    path = tmp_path / "claims.yml"
    path.write_text(
        yaml.safe_dump(
            {
                "sources": {"R": {"title": "t", "about": "a"}},
                "chapters": {"02_attention": "Attention", "03_positions": "Positions"},
                "topics": {"cats": {"question": "What is a cat?", "part": "animals"}},
                "claims": list(claims),
                "systems": [],
            }
        )
    )
    return load(path)


def test_the_book_keeps_every_claim_and_system_of_its_sources():
    count = {"R": 86, "H": 40, "C": 22, "V": 36, "L": 22}
    assert list(load().claims) == [f"{s}{i:02d}" for s, n in count.items() for i in range(1, n + 1)]
    assert list(load().systems) == [*(f"S{i:02d}" for i in range(1, 50)), "S60"]
    assert len(load().chapters) == 23


def test_statements_are_short_and_no_two_are_alike():
    statements = [claim.statement for claim in load().claims.values()]
    assert len(set(statements)) == len(statements)
    assert all(40 <= len(statement) <= 330 for statement in statements)


def test_a_row_is_read_with_its_rule(tmp_path):
    claim = rows(tmp_path, CLAIM | {"rule": RULE, "also": ["03_positions"]}).claims["R01"]
    assert claim.also == ("03_positions",)
    assert claim.rule.apply(0.5) == "holds"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chapter": "99_cats"}, "R01 names an unknown chapter: 99_cats"),
        ({"also": ["99_cats"]}, "R01 names an unknown chapter: 99_cats"),
        ({"also": ["02_attention"]}, "R01: 02_attention owns it"),
        ({"id": "Q01"}, "Q01 comes from no known source"),
        ({"basis": "guessed"}, "R01: .*'guessed'"),
        ({"colour": "grey"}, "R01: .*colour"),
        ({"topic": "dogs"}, "R01 has an unknown topic: 'dogs'"),
        ({"amended": [{"was": "holds if < 2"}]}, "R01: .*'when' and 'because'"),
        ({"rule": {"< 1": "holds", "otherwise": "refuted"}}, "R01: .*refutes nothing"),
        ({"rule": {"always": "holds"}}, "R01: .*'holds' needs a figure"),
    ],
)
def test_a_row_that_is_wrong_is_named(tmp_path, change, said):
    with pytest.raises(ValueError, match=said):
        rows(tmp_path, CLAIM | change)


def test_a_claim_owned_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match="claim R01 stands twice"):
        rows(tmp_path, CLAIM, CLAIM | {"chapter": "03_positions"})


def test_only_an_exact_scale_or_the_sources_own_can_refute():
    fields = {key: CLAIM[key] for key in CLAIM if key != "scale"}
    for scale in ("exact", "source"):
        Claim(**fields, scale=scale)


JUDGED = [claim for claim in load().claims.values() if claim.rule]
MEASURED = [claim for claim in JUDGED if claim.rule.measures]


def test_a_card_says_where_a_claim_stands_and_when_its_rule_was_written():
    assert [claim.id for claim in JUDGED if not (claim.place and claim.since)] == []


def test_every_threshold_has_a_reason_and_every_figure_its_models_and_data():
    assert [claim.id for claim in MEASURED if len(claim.because) <= 30 or not claim.setting] == []


def test_a_rule_that_cannot_say_yes_or_nothing_else_gives_its_reason():
    silent = {claim.id for claim in MEASURED if "holds" not in claim.rule.words}
    assert {claim.id for claim in JUDGED if claim.one_sided} == silent


def test_a_verdict_is_a_sentence_that_stands_alone():
    leaning = re.compile(r"(it|its|they|them|this|that|these|those|so|and|but|nor)\b", re.I)
    verdicts = [
        (claim.id, verdict.partition(": ")[2])
        for claim in JUDGED
        for verdict in [*(case[-1] for case in claim.rule.cases), claim.rule.otherwise]
    ]
    assert len(verdicts) > len(JUDGED)
    assert [verdict for verdict in verdicts if leaning.match(verdict[1])] == []


def test_stored_results_behind_a_figure_are_there():
    names = {name for claim in MEASURED for name in claim.study}
    assert len(names) > 5 and [name for name in names if not study(name).rows] == []
