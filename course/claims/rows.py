"""The rows of ``book/claims.yml``: the claims of the sources, and how the book decides them."""

import re
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from vitlab.claims.rules import UNMEASURED, Rule

HERE = Path(__file__).resolve()
# Beside the packages in a clone, within this one where it is installed.
BOOK = next(path / "book" for path in HERE.parents[2:0:-1] if (path / "book/claims.yml").is_file())
CIFAR10 = "; CIFAR-10 from JPEG files of quality 75"  # the copy that all studies used
BASES = {
    "proved": "proved: by algebra, or by an exact counterexample",
    "measured": "measured in an experiment",
    "cited": "looked up in the original papers",
}
SCALES = {
    "exact": "true at any size",
    "source": "in the source's own setting",
    "small": "on this book's small models",
    "pretrained": "on a pretrained ViT of 22 million parameters",
    "none": "nothing measured",
}


@dataclass(frozen=True)
class Amendment:
    """A change of a rule, or of what it measures, after its first verdict."""

    when: date
    was: str  # the rule or the measure before
    because: str
    verdict: str = ""  # the word before, where another came of it


@dataclass(frozen=True)
class Dispute:
    """What an author of the paper or of the source says against a verdict."""

    when: date
    by: str
    reply: str  # in the author's words
    answer: str  # the book's


@dataclass(frozen=True)
class Claim:
    """One claim; ``claims.yml`` explains the fields. ``rule`` is None until a chapter has one."""

    id: str
    statement: str
    chapter: str  # gives the verdict
    measure: str
    basis: str
    scale: str
    topic: str = ""
    place: str = ""
    of: dict[str, str] = field(default_factory=dict)  # the paper that it is about
    inferred: str = ""
    also: tuple[str, ...] = ()
    setting: str = ""
    unit: str = ""
    format: str = ".2g"
    share: bool = False  # whether the value is one, whose interval stays in [0, 1]
    replicates: str = "seeds"
    looks: int = 1  # how often a verdict was read, if seeds were added because of what it was
    study: tuple[str, ...] = ()
    comparative: bool = False  # whether it compares trained models, and needs readings
    question: str = ""  # by which vitlab.claims asks the claim of any model
    rule: Rule | None = None
    because: str = ""
    one_sided: str = ""
    floor: str = ""
    since: date | None = None
    before: bool = False
    amended: tuple[Amendment, ...] = ()
    disputed: tuple[Dispute, ...] = ()

    def __post_init__(self) -> None:
        if self.basis not in BASES or self.scale not in SCALES:
            raise ValueError(
                f"{self.id}: basis is one of {tuple(BASES)} and scale one of {tuple(SCALES)}: "
                f"got {self.basis!r}, {self.scale!r}"
            )
        words = self.rule.words if self.rule else set()
        if "refuted" in words and self.scale not in ("exact", "source"):
            raise ValueError(
                f"{self.id}: a small model that behaves otherwise refutes nothing: "
                "the word is 'the opposite was seen here'"
            )
        if self.rule and not self.rule.measures and not words <= set(UNMEASURED):
            raise ValueError(f"{self.id}: '{self.rule.otherwise}' needs a value")


@dataclass(frozen=True)
class Rows:
    """Everything in ``claims.yml``, whose head explains it: sources by letter, chapters (their
    titles) by file name, the rest by id."""

    sources: dict[str, dict[str, str]]
    chapters: dict[str, str]
    topics: dict[str, dict[str, str]]
    claims: dict[str, Claim]
    systems: dict[str, dict[str, str]]
    papers: dict[str, dict[str, Any]]  # by their keys in references.bib

    def of_documents(self) -> dict[str, Claim]:
        """The claims of the five documents, without those of later papers."""
        return {n: c for n, c in self.claims.items() if not self.sources[n[0]].get("later")}


@cache
def load(path: Path = BOOK / "claims.yml") -> Rows:
    """Reads the rows; one that is malformed, or contradicts another, raises ValueError."""
    raw = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    topics, systems = raw["topics"], {system["id"]: system for system in raw["systems"]}
    rows = Rows(raw["sources"], raw["chapters"], topics, {}, systems, raw.get("papers", {}))
    for fields in raw["claims"]:
        name = fields["id"]
        try:
            claim = _claim(fields)
            if name in rows.claims:
                raise ValueError("stands twice")
            if name[0] not in rows.sources:
                raise ValueError("comes from no known source")
            if claim.topic not in topics:
                raise ValueError(f"unknown topic {claim.topic!r}")
            if unknown := {claim.chapter, *claim.also} - rows.chapters.keys():
                raise ValueError(f"unknown chapters {unknown}")
            if claim.chapter in claim.also:
                raise ValueError(f"{claim.chapter} owns it, so it is not in 'also'")
        except (TypeError, ValueError) as error:
            raise ValueError(f"claim {name}: {error}") from error
        rows.claims[name] = claim
    return rows


def _claim(fields: dict[str, Any]) -> Claim:
    setting = fields.get("setting", "")
    if re.search("CIFAR-10|cifar10_", setting):
        fields["setting"] = setting + CIFAR10
    lists: dict[str, tuple] = {name: tuple(fields.get(name, ())) for name in ("also", "study")}
    lists["amended"] = tuple(Amendment(**change) for change in fields.get("amended", ()))
    lists["disputed"] = tuple(Dispute(**each) for each in fields.get("disputed", ()))
    rule = Rule.parse(fields["rule"]) if "rule" in fields else None
    return Claim(**fields | lists | {"rule": rule})
