"""The rows of ``book/claims.yml``: the claims of the sources, and how the book decides them."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from course.claims.rules import Rule, word_of

BOOK = Path(__file__).resolve().parents[2] / "book"
BASES = ("proved", "measured", "cited")
SCALES = ("exact", "source", "small", "none")


@dataclass(frozen=True)
class Claim:
    """One claim. ``rule`` is None until a chapter says how a figure decides it."""

    id: str
    statement: str
    chapter: str  # gives the verdict
    measure: str
    basis: str
    scale: str
    also: tuple[str, ...] = ()
    rule: Rule | None = None
    format: str = ".2g"  # of the printed figure: the digits that do not flip

    def __post_init__(self) -> None:
        if self.basis not in BASES or self.scale not in SCALES:
            raise ValueError(
                f"{self.id}: basis is one of {BASES} and scale one of {SCALES}: "
                f"got {self.basis!r}, {self.scale!r}"
            )
        if self.rule is None:
            return
        words = {word_of(v) for *_, v in self.rule.cases} | {word_of(self.rule.otherwise)}
        if "refuted" in words and self.scale not in ("exact", "source"):
            raise ValueError(
                f"{self.id}: a small model that behaves otherwise refutes nothing: "
                "the word is 'not seen at this scale'"
            )
        if not self.rule.measures and not words <= {"history, cited", "cannot be measured here"}:
            raise ValueError(f"{self.id}: '{self.rule.otherwise}' needs a figure")


@dataclass(frozen=True)
class System:
    """A model or method that the sources name, and what the book does with it."""

    id: str
    name: str
    chapter: str
    state: str
    statement: str


@dataclass(frozen=True)
class Rows:
    """Everything in ``claims.yml``: sources by letter, chapters (their titles) by file name, the
    rest by id."""

    sources: dict[str, dict[str, str]]
    chapters: dict[str, str]
    claims: dict[str, Claim]
    systems: dict[str, System]


@cache
def load(path: Path = BOOK / "claims.yml") -> Rows:
    """Reads the rows; one that is malformed, or contradicts another, raises ValueError."""
    raw = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    rows = Rows(raw["sources"], raw["chapters"], {}, {})
    for fields in raw["claims"]:
        name = fields["id"]
        if name in rows.claims:
            raise ValueError(f"claim {name} stands twice in {path.name}")
        try:
            rule = Rule.parse(fields.pop("rule")) if "rule" in fields else None
            claim = Claim(**fields | {"also": tuple(fields.get("also", ())), "rule": rule})
        except (TypeError, ValueError) as error:
            raise ValueError(f"claim {name}: {error}") from error
        if name[0] not in rows.sources:
            raise ValueError(f"claim {name} comes from no known source")
        for chapter in (claim.chapter, *claim.also):
            if chapter not in rows.chapters:
                raise ValueError(f"claim {name} names an unknown chapter: {chapter}")
        if claim.chapter in claim.also:
            raise ValueError(f"claim {name}: {claim.chapter} owns it, so it is not in 'also'")
        rows.claims[name] = claim
    for fields in raw["systems"]:
        if fields["id"] in rows.systems:
            raise ValueError(f"system {fields['id']} stands twice in {path.name}")
        rows.systems[fields["id"]] = System(**fields)
    return rows
