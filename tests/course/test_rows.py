import pytest
import yaml

from course.claims.rows import Claim, load

CLAIM = {
    "id": "R01",
    "chapter": "02_attention",
    "basis": "measured",
    "scale": "small",
    "statement": "Cats are grey.",
    "measure": "Colour of cats.",
}
RULE = {"< 1": "holds", "otherwise": "not seen at this scale"}


def rows(tmp_path, *claims):
    path = tmp_path / "claims.yml"
    path.write_text(
        yaml.safe_dump(
            {
                "sources": {"R": {"title": "t", "about": "a"}},
                "chapters": {"02_attention": "Attention", "03_positions": "Positions"},
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
