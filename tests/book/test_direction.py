"""First words and present ones, of claims whose words are known."""

import pytest

from book._ext import direction
from course.claims.ledger import Found, harvest
from course.claims.rows import load

PATHS = {
    "A": ["refuted", "qualified, misprinted"],
    "B": ["the opposite was seen here", "too uncertain to tell"],
    "C": ["the opposite was seen here", "holds", "refuted"],
    "D": ["holds", "weaker than claimed"],
    "E": ["qualified, in part", "qualified, misprinted"],
    "F": ["not seen at this scale", "cannot be measured here"],
    "G": ["history, cited"],
}


def test_words_are_counted_by_where_they_began_and_ended():
    assert direction.counts(PATHS) == {
        **{"softened": 2, "the same": 2, "sharpened": 2, "set apart": 1},
        **{"other-words": 6, "first-no": 3, "no-to-yes": 1, "no-to-no": 1, "yes-to-less": 1},
    }


@pytest.mark.parametrize("word", direction.DISTANCE)
def test_a_way_back_is_the_contrary_of_the_way(word):
    contrary = dict(zip(direction.WAYS, ("sharpened", "the same", "softened"), strict=False))
    for other in direction.DISTANCE:
        assert direction.way(other, word) == contrary[direction.way(word, other)]


def test_the_table_has_each_claim_once_in_the_row_of_its_first_word():
    table = direction.table(PATHS)
    assert table.count("<tr>") == 7  # with the heading
    opposite = '<th scope="row">the opposite was seen here (2)</th>'
    row = f"{opposite}<td>1 uncertain</td><td></td><td>1 refuted</td><td></td></tr>"
    assert row in table.replace("\n", "")


def test_a_path_takes_its_last_word_from_the_output_and_says_no_word_twice_in_a_row():
    row = next(claim for claim in load().claims.values() if len(claim.amended) > 1)
    before = [change.verdict for change in row.amended if change.verdict]
    for last in ("holds", "refuted: by a proof"):
        (words,) = direction.paths({row.id: Found(row.id, "", "", "", last)}).values()
        assert words[-1] == last.partition(":")[0] and words[0] == [*before, words[-1]][0]
        assert all(a != b for a, b in zip(words, words[1:], strict=False))
    assert direction.told(["holds"]) == []
    assert direction.told(["holds", "refuted"])[0][1] == "holds → refuted"


def test_every_stored_word_has_a_place():
    words = {word.partition(",")[0] for row in direction.paths(harvest()).values() for word in row}
    assert words <= {*direction.DISTANCE, "cannot be measured here", "history"}
