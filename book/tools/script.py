"""The script of the lecture in pieces, so that its slides carry its words and no copy of them."""

import re
from functools import cache

from course.claims.rows import BOOK

WORDS_A_MINUTE = 130
MINUTES = re.compile(r"\*\*(?:Live|Questions), (\d+) min\.\*\*")
SPAN = re.compile(r"(\d+)\.(\d+)(?:-(\d+))?")  # 2.1-3: of section 2 the paragraphs 1 to 3
LINK = re.compile(r"\{doc\}`([^<`]+?)\s*<[^>]*>`")
HEADING = re.compile(r"(?m)^(## [^{\n]*)\{([^}\n]*)script=([\d.-]+)([^}\n]*)\}$")
ROLE = re.compile(r"\{\w+\}`([^`]+)`")


@cache
def sections() -> list[list[str]]:
    """Of each section the paragraphs, each a line; those that are spoken begin with >."""
    text = (BOOK / "teaching/lecture.md").read_text(encoding="utf-8")
    by_section = []
    for section in re.split(r"(?m)^## ", text)[1:]:
        lines = [re.sub(r"^>$", "", line) for line in section.splitlines()[1:]]
        blocks = [block.strip() for block in "\n".join(lines).split("\n\n")]
        by_section.append([" ".join(re.sub(r"\n>? ?", " ", b).split()) for b in blocks if b])
    return by_section


def paragraphs(span: str) -> list[str]:
    """Those of a span such as ``2.1-3``."""
    match = SPAN.fullmatch(span)
    section, first, last = int(match[1]), int(match[2]), int(match[3] or match[2])
    return sections()[section - 1][first - 1 : last]


def seconds(span: str) -> int:
    """How long a span takes, at 130 spoken words a minute."""
    texts = paragraphs(span)
    words = sum(len(text.split()) - 1 for text in texts if text.startswith(">"))
    minutes = sum(int(n) for text in texts for n in MINUTES.findall(text))
    return round(60 * (words / WORDS_A_MINUTE + minutes))


def notes(span: str) -> str:
    """A span as speaker notes; what is to be done is bold, as in the script."""
    texts = (LINK.sub(r"*\1*", text.removeprefix("> ")) for text in paragraphs(span))
    return "::: notes\n" + "\n\n".join(ROLE.sub(r"`\1`", text) for text in texts) + "\n:::"


def spoken(deck: str) -> str:
    """A deck with the words of each slide as its notes, and their seconds as its timing."""
    return HEADING.sub(
        lambda m: f"{m[1]}{{{m[2]}timing={seconds(m[3])}{m[4]}}}\n\n{notes(m[3])}", deck
    )
