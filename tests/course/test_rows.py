import re

import pytest
import yaml

from course.claims.rows import load
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
    rule = {"< 1": "holds", "otherwise": "weaker than claimed"}
    claim = rows(tmp_path, CLAIM | {"rule": rule, "also": ["03_positions"]}).claims["R01"]
    assert claim.also == ("03_positions",)
    assert claim.rule.apply(0.5) == "holds"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chapter": "99_cats"}, "99_cats"),
        ({"also": ["99_cats"]}, "99_cats"),
        ({"also": ["02_attention"]}, "02_attention owns it"),
        ({"id": "Q01"}, "no known source"),
        ({"basis": "guessed"}, "'guessed'"),
        ({"colour": "grey"}, "colour"),
        ({"topic": "dogs"}, "'dogs'"),
        ({"amended": [{"was": "holds if < 2"}]}, "'when' and 'because'"),
        ({"rule": {"< 1": "holds", "otherwise": "refuted"}}, "refutes nothing"),
        ({"rule": {"always": "holds"}}, "'holds' needs a figure"),
    ],
)
def test_a_row_that_is_wrong_is_named(tmp_path, change, said):
    claim = CLAIM | change
    with pytest.raises(ValueError, match=f"claim {claim['id']}: .*{said}"):
        rows(tmp_path, claim)


def test_a_claim_owned_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match="claim R01: stands twice"):
        rows(tmp_path, CLAIM, CLAIM | {"chapter": "03_positions"})


def test_only_an_exact_scale_or_the_sources_own_can_refute(tmp_path):
    for scale in ("exact", "source"):
        rule = {"< 1": "holds", "otherwise": "refuted"}
        assert rows(tmp_path, CLAIM | {"scale": scale, "rule": rule}).claims["R01"].rule
        load.cache_clear()


JUDGED = [claim for claim in load().claims.values() if claim.rule]
MEASURED = [claim for claim in JUDGED if claim.rule.measures]
PRONOUN = r"(it|its|they|them|this|that|these|those|so|and|but|nor)\b"


def wrong(claims, right):
    """The ids of the claims for which something does not hold."""
    return [claim.id for claim in claims if not right(claim)]


def test_a_card_says_where_a_claim_stands_and_when_its_rule_was_written():
    assert not wrong(JUDGED, lambda claim: claim.place and claim.since)


def test_every_threshold_has_a_reason_and_every_figure_its_models_and_data():
    assert not wrong(MEASURED, lambda claim: len(claim.because) > 30 and claim.setting)


def test_a_rule_that_cannot_say_yes_and_nothing_else_gives_its_reason():
    def one_sided(claim):
        return claim.rule.measures and "holds" not in claim.rule.words

    assert not wrong(JUDGED, lambda claim: bool(claim.one_sided) == one_sided(claim))


def test_a_verdict_is_a_sentence_that_stands_alone():
    def alone(claim):
        verdicts = [*(verdict for *_, verdict in claim.rule.cases), claim.rule.otherwise]
        return not any(re.match(PRONOUN, v.partition(": ")[2], re.I) for v in verdicts)

    assert not wrong(JUDGED, alone)


def test_stored_results_behind_a_figure_are_there():
    assert not wrong(MEASURED, lambda claim: all(study(name).rows for name in claim.study))
