"""The ledger as data: one object for JSON, and rows for CSV.

``ledger.schema.json`` beside this file says what each field means.
"""

import csv
import io
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from course.claims.cite import Build, address, citation
from course.claims.ledger import Found
from course.claims.others import others_of
from course.claims.rows import BASES, SCALES, Claim, load
from course.claims.verdict import half_width
from course.results import study
from vitlab.claims.rules import WORDS, Rule, word_of
from vitlab.extras import installed

SCHEMA = Path(__file__).with_name("ledger.schema.json")
PACKAGES = ("torch", "torchvision", "numpy", "scipy", "einops", "scikit-learn", "scikit-image")
# Of a claim, in this order, the columns of the CSV.
COLUMNS = (
    *("id", "word", "verdict", "statement", "value", "low", "high", "unit", "seeds", "figure"),
    *("interval", "margin", "measure", "setting", "rule", "because"),
    *("one_sided", "since", "before"),
    *("amended", "basis", "scale", "topic", "part", "chapter", "also", "cell", "studies", "others"),
    *("source", "place", "inferred", "url"),
)


def ledger(found: dict[str, Found], build: Build) -> dict[str, Any]:
    """Everything that the ledger knows, as JSON takes it."""
    rows, said = load(), citation()
    claims = [_claim(claim, found.get(name), build) for name, claim in rows.claims.items()]
    return {
        "title": said["title"],
        "version": said["version"],
        "license": "CC-BY-4.0",
        "commit": build.commit,
        "date": build.date,
        "packages": installed(PACKAGES),
        "words": [*WORDS, "open"],
        "bases": BASES,
        "scales": SCALES,
        "sources": rows.sources,
        "topics": {
            name: {"question": topic.question, "part": topic.part}
            for name, topic in rows.topics.items()
        },
        "chapters": rows.chapters,
        "claims": claims,
    }


def _claim(claim: Claim, found: Found | None, build: Build) -> dict[str, Any]:
    seeds = list(found.seeds) if found else []
    mean = math.fsum(seeds) / len(seeds) if seeds else None
    low, high = _interval(seeds)
    return {
        "id": claim.id,
        "word": word_of(found.verdict) if found else "open",
        "verdict": found.verdict if found else "",
        "statement": claim.statement,
        "value": mean,
        "low": low,
        "high": high,
        "seeds": seeds,
        "unit": claim.unit,
        "figure": found.figure if found else "",
        "interval": found.interval if found else "",
        "margin": found.margin if found else "",
        "measure": claim.measure,
        "setting": claim.setting,
        "rule": _rule(claim.rule) if claim.rule else None,
        "because": claim.because,
        "one_sided": claim.one_sided,
        "since": claim.since.isoformat() if claim.since else None,
        "before": claim.before,
        "amended": [
            {"when": a.when.isoformat(), "was": a.was, "verdict": a.verdict, "because": a.because}
            for a in claim.amended
        ],
        "basis": claim.basis,
        "scale": claim.scale,
        "topic": claim.topic,
        "part": load().topics[claim.topic].part,
        "chapter": claim.chapter,
        "also": list(claim.also),
        "cell": found.cell if found else "",
        "studies": [_study(name) for name in claim.study],
        "others": [asdict(other) for other in others_of(claim.id)],
        "source": claim.id[0],
        "place": claim.place,
        "inferred": claim.inferred,
        "url": address(claim.id, build),
    }


def _interval(seeds: list[float]) -> tuple[float, float] | tuple[None, None]:
    if len(seeds) == 1 or not seeds:
        return None, None
    mean, half = math.fsum(seeds) / len(seeds), half_width(np.array(seeds))
    return mean - half, mean + half


def _rule(rule: Rule) -> dict[str, Any]:
    cases = [
        {"sign": sign, "threshold": threshold, "verdict": verdict}
        for sign, threshold, verdict in rule.cases
    ]
    return {
        "text": str(rule),
        "cases": cases,
        "otherwise": rule.otherwise,
        "uncertain": rule.uncertain,
    }


def _study(name: str) -> dict[str, str]:
    """Where stored results come from; a survey's rows have their own commits."""
    kept = study(name)
    return {
        "name": name,
        "command": kept.command,
        "commit": kept.commit,
        "date": kept.date,
        "machine": kept.machine,
    }


def table(data: dict[str, Any]) -> str:
    """The claims as CSV, a row for each; what is a list there is joined by semicolons here."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(claim[name]) for name in COLUMNS} for claim in data["claims"])
    return out.getvalue()


def _cell(value: Any) -> Any:
    match value:
        case {"text": text}:  # a rule
            return text
        case {"name": name}:  # a study
            return name
        case {"model": model, "word": word, "figure": figure}:  # an audit
            return f"{model}: {word} ({figure})"
        case {"when": when, "was": was}:  # an amendment
            return f"{when}: {was}"
        case [*several]:
            return "; ".join(str(_cell(one)) for one in several)
    return value
