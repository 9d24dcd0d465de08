"""The map of the book agrees with the claims: the same chapters, in an order one can read."""

from book._ext.chapters import length, load_map, notebook
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
