"""The map of the book agrees with the claims: the same chapters, in an order one can read."""

import pytest

from book._ext.chapters import MAP as FILE
from book._ext.chapters import length, load_map, notebook
from course.claims.rows import load

MAP = load_map()
CHAPTERS = {name: about for part in MAP["parts"] for name, about in part["chapters"].items()}


def test_the_map_has_every_chapter_in_order():
    assert list(CHAPTERS) == list(load().chapters)


def test_a_chapter_needs_only_chapters_before_it():
    for name, about in CHAPTERS.items():
        assert all(1 <= number < int(name[:2]) for number in about["needs"]), name


def test_a_visit_goes_forward_through_chapters_that_there_are():
    for visit in MAP["visits"]:
        numbers = [step["chapter"] for step in visit["steps"]]
        assert numbers == sorted(set(numbers))
        assert set(numbers) <= {int(name[:2]) for name in CHAPTERS}


def test_the_core_of_the_first_part_can_be_read_in_a_day():
    assert sum(length(notebook(name)).core_words for name in MAP["parts"][0]["chapters"]) <= 15_000


@pytest.mark.parametrize("old, new", [
    ('"all of it, with two exercises"', "all of it, with two exercises"),
    ('do: "week 3"', "did: week 3"),
    ("needs: [1, 2]", "needs:"),
    ("question: Is attention needed at all?", "asks: Is attention needed at all?"),
    ("    for: You teach", "    to: You teach"),
])  # fmt: skip
def test_a_map_with_a_field_too_many_or_without_a_value_is_refused(old, new, tmp_path):
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "chapters.yml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match="must be quoted"):
        load_map(tmp_path / "chapters.yml")
