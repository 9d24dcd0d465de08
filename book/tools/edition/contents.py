"""What an edition holds: its table of contents, and its map of the chapters."""

import re
from copy import deepcopy
from typing import Any

Contents = dict[str, Any]  # _toc.yml as it is read

# Of the pages for teachers, those that students get; a page that is new is for teachers alone.
FOR_STUDENTS = ("book/teaching/prerequisites", "book/teaching/projects", "book/teaching/errata")


def pages(contents: Contents) -> list[str]:
    return [contents["root"], *(page for part in contents["parts"] for page in pages_of(part))]


def pages_of(part: Contents) -> list[str]:
    with_sections = ((entry, *entry.get("sections", [])) for entry in part["chapters"])
    return [page["file"] for entry in with_sections for page in entry]


def number(page: str) -> int | None:
    """The number of a chapter or of its solutions: 2 of ``book/02_attention``; else None."""
    match = re.fullmatch(r"book/(?:solutions/)?(\d\d)_\w+", page)
    return int(match[1]) if match else None


def chosen(text: str, contents: Contents) -> frozenset[int]:
    """The chapters that ``1,2,4,14`` names."""
    known = {number(page) for page in pages(contents)} - {None, 0}
    given = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) in known for part in given):
        raise ValueError(
            f"CHAPTERS names chapters by number, 1 to {max(known)}, with commas between them, "
            f"such as 1,2,4,14: got {text!r}"
        )
    return frozenset(map(int, given))


def for_students(contents: Contents) -> Contents:
    """Without solutions, and of the pages for teachers those that students need."""
    lesser = deepcopy(contents)
    for part in lesser["parts"]:
        if part.get("caption") == "For teachers":
            part["caption"] = "For the course"
            part["chapters"] = [e for e in part["chapters"] if e["file"] in FOR_STUDENTS]
        part["chapters"] = [e for e in part["chapters"] if e["file"] != "book/solutions"]
    return lesser


def remixed(contents: Contents, chapters: frozenset[int]) -> Contents:
    """With these chapters alone and their solutions; a part that loses all of them goes, too."""

    def of_these(entries: list[Contents]) -> list[Contents]:
        return [entry for entry in entries if number(entry["file"]) in {None, 0, *chapters}]

    parts: list[Contents] = []
    for part in deepcopy(contents["parts"]):
        part["chapters"] = of_these(part["chapters"])
        for entry in part["chapters"]:
            if "sections" in entry:
                entry["sections"] = of_these(entry["sections"])
        if part["chapters"]:
            parts.append(part)
        elif part.get("numbered"):
            parts.pop()  # the part's title and its first page
    return contents | {"parts": parts}


def remixed_map(book: dict[str, Any], chapters: frozenset[int]) -> dict[str, Any]:
    """``chapters.yml`` with these chapters alone; its parts keep their places, and so numbers."""
    lesser = deepcopy(book)
    for part in lesser["parts"]:
        for name in [name for name in part["chapters"] if int(name[:2]) not in chapters]:
            del part["chapters"][name]
    for visit in lesser["visits"]:
        visit["steps"] = [step for step in visit["steps"] if step["chapter"] in chapters]
    lesser["visits"] = [visit for visit in lesser["visits"] if visit["steps"]]
    return lesser


def missing(book: dict[str, Any], chapters: frozenset[int]) -> dict[int, list[int]]:
    """Chapters that build on others which are not chosen, with the numbers of these."""
    parts = remixed_map(book, chapters)["parts"]
    needs = {int(n[:2]): about["needs"] for part in parts for n, about in part["chapters"].items()}
    absent = {chapter: sorted({*numbers} - chapters) for chapter, numbers in needs.items()}
    return {chapter: numbers for chapter, numbers in absent.items() if numbers}
