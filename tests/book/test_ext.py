"""What pages are told: the map of chapters, claims' first and present words, and what an edition leaves out."""

from types import SimpleNamespace

import pytest
from docutils import nodes

from book._ext import direction, edition
from book._ext.chapters import length, load_map, notebook
from course.claims.ledger import Found, harvest
from course.claims.rows import load

MAP = load_map()
CHAPTERS = {name: about for part in MAP["parts"] for name, about in part["chapters"].items()}


def test_the_map_has_every_chapter_in_order_and_each_needs_only_those_before_it():
    assert list(CHAPTERS) == list(load().chapters)
    for name, about in CHAPTERS.items():
        assert all(1 <= number < int(name[:2]) for number in about["needs"]), name
    for visit in MAP["visits"]:
        numbers = [step["chapter"] for step in visit["steps"]]
        assert numbers == sorted(set(numbers))
        assert set(numbers) <= {int(name[:2]) for name in CHAPTERS}
    # The core of the first part can be read in a day.
    assert sum(length(notebook(name)).core for name in MAP["parts"][0]["chapters"]) <= 200


def test_each_entry_has_its_fields_and_no_other():
    """Within braces, YAML ends a text at a comma unless it is quoted: the rest is another field."""
    for fields, entries in {
        "title question chapters": MAP["parts"],
        "question needs": CHAPTERS.values(),
        "title for steps": MAP["visits"],
        "chapter do": [step for visit in MAP["visits"] for step in visit["steps"]],
    }.items():
        assert all(list(e) == fields.split() and None not in e.values() for e in entries), fields


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


GONE = {
    "left_out": {"book/09_where": "Where attention looks", "book/part_2": "See, in one page"},
    "labels": {"fig-distances": "book/09_where", "looks": "book/part_2"},
    "whole": "",
}


@pytest.fixture(params=["", "https://owner.github.io/book/"])
def whole(request, monkeypatch):
    monkeypatch.setattr(edition, "edition", lambda: GONE | {"whole": request.param})
    return request.param


def resolved(kind, target, text="", page="book/02_attention"):
    node = {"reftype": kind, "reftarget": target, "refdoc": page, "refexplicit": bool(text)}
    return edition.resolve(None, SimpleNamespace(), node, nodes.literal("", text or target))


@pytest.mark.parametrize("kind, target, text, page, said, there", [
    ("doc", "09_where", "chapter 9", "book/02_attention", "chapter 9", "book/09_where.html"),
    ("doc", "../09_where", "", "book/teaching/course", "Where attention looks", "book/09_where.html"),
    ("doc", "/book/09_where", "", "index", "Where attention looks", "book/09_where.html"),
    ("numref", "fig-distances", "", "index", "a figure of chapter 9", "book/09_where.html#fig-distances"),
    ("ref", "looks", "", "index", "a section of See, in one page", "book/part_2.html#looks"),
])  # fmt: skip
def test_a_link_to_what_is_left_out(whole, kind, target, text, page, said, there):
    node = resolved(kind, target, text, page)
    assert node.astext() == said
    assert node.get("refuri", "") == (f"{whole}{there}" if whole else "")
    assert resolved("doc", "10_nowhere") is None, "broken in the whole book, too"
    assert resolved("numref", "fig-nowhere") is None


def test_without_the_file_of_an_edition_every_page_is_in_it_and_chapters_are_listed():
    assert not edition.FILE.exists()
    assert edition.in_this_edition("book/09_where")
    assert edition.address("book/09_where", "09_where.html") == "09_where.html"
    assert edition.listed([3]) == "chapter 3"
    assert edition.listed([3, 5]) == "chapters 3 and 5"
    assert edition.listed([3, 5, 6, 7, 15, 16]) == "chapters 3, 5 to 7 and 15 to 16"
