"""The map of the book agrees with the claims: the same chapters, in an order one can read."""

import yaml

from course.claims.rows import BOOK, load

MAP = yaml.safe_load((BOOK / "chapters.yml").read_text(encoding="utf-8"))
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
