"""Which pages an edition has, and that a wrong choice of chapters gets one clear sentence."""

import pytest

from book.tools.edition.__main__ import arguments
from book.tools.edition.contents import FOR_STUDENTS, chosen, missing, number, pages, remixed_map
from book.tools.edition.tree import Edition, labels, load, table

WHOLE = load("_toc.yml")
MAP = load("book/chapters.yml")
SOME = frozenset({1, 2, 4, 14})


@pytest.mark.parametrize("text", ["", "0", "24", "1,99", "1;2", "two", "1,,2", "-1"])
def test_chapters_that_are_not_there_get_one_sentence(text, capsys):
    with pytest.raises(SystemExit) as ended:
        arguments(["--chapters", text])
    assert ended.value.code == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "1 to 23" in sentence and sentence.endswith(f"got {text!r}")


def test_some_chapters_bring_what_is_no_chapter_and_students_get_no_solutions():
    kept, left_out = table(Edition(chapters=chosen("14, 1,2,4", WHOLE)))
    assert {number(page) for page in pages(kept)} - {None, 0} == SOME
    assert sum(page.startswith("book/solutions/") for page in pages(kept)) == len(SOME)
    assert {"index", "book/ledger", "book/00_in_an_hour", "book/part_3"} <= set(pages(kept))
    assert {"book/part_2", "book/part_4", "book/09_where_attention_looks"} <= left_out
    captions = [part.get("caption", "") for part in kept["parts"]]
    assert "III. Turn it around" in captions and "II. See" not in captions
    assert all(part["chapters"] for part in kept["parts"])
    kept, left_out = table(Edition(student=True))
    assert not any("solutions" in page for page in pages(kept))
    assert {page for page in pages(kept) if "teaching" in page} == set(FOR_STUDENTS)
    assert "book/teaching/exam_marking" in left_out
    assert {number(page) for page in pages(kept)} - {None} == set(range(24))


def test_the_map_keeps_the_places_of_parts_and_the_steps_that_are_left():
    kept = remixed_map(MAP, SOME)
    assert [part["title"] for part in kept["parts"]] == [part["title"] for part in MAP["parts"]]
    assert [len(part["chapters"]) for part in kept["parts"]] == [3, 0, 1, 0, 0]
    steps = {step["chapter"] for visit in kept["visits"] for step in visit["steps"]}
    assert steps and steps <= SOME
    assert missing(MAP, SOME) == {4: [3], 14: [12, 13]}
    assert {"fig-rebuilt", "eq-attention"} <= set(labels("book/02_attention"))
    assert "verdicts" in labels("index")


@pytest.mark.parametrize("given", ["https://a.b/book", "https://a.b/book/"])
def test_the_address_of_a_site_may_end_with_a_slash_or_not(given):
    assert arguments(["--site", given]).site == "https://a.b/book/"
