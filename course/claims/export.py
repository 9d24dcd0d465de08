"""The ledger as data: one object for JSON, and rows for CSV.

``ledger.schema.json`` beside this file says what each field means.
"""

import csv
import io
import json
import math
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from course.claims.cite import Build, address, citation
from course.claims.estimate import interval
from course.claims.ledger import Found
from course.claims.others import others_of
from course.claims.rows import BASES, SCALES, Claim, load
from course.results import study
from vitlab.claims.rules import WORDS, Rule, word_of
from vitlab.extras import installed

SCHEMA = Path(__file__).with_name("ledger.schema.json")
PACKAGES = ("torch", "torchvision", "numpy", "scipy", "einops", "scikit-learn", "scikit-image")
# The fields of a claim, in the schema's order the columns of the CSV.
FIELDS = json.loads(SCHEMA.read_bytes())["properties"]["claims"]["items"]["properties"]
COLUMNS = tuple(FIELDS)
# Where stored results come from; a survey's rows have their own commits.
STUDY = ("name", "command", "commit", "date", "machine")


def ledger(found: dict[str, Found], build: Build) -> dict[str, Any]:
    """Everything that the ledger knows, as JSON takes it."""
    rows, said = load(), citation()
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
        "papers": rows.papers,
        "topics": rows.topics,
        "chapters": rows.chapters,
        "claims": [_claim(claim, found.get(name), build) for name, claim in rows.claims.items()],
    }


def _claim(claim: Claim, found: Found | None, build: Build) -> dict[str, Any]:
    found = found or Found(claim.id)
    seeds, low, high = found.seeds, None, None
    if len(seeds) > 1:
        centre, half = interval(np.array(seeds), found.half, claim.share)
        low, high = centre - half, centre + half
    row = asdict(claim) | asdict(found)
    row |= {
        "word": word_of(found.verdict) if found.verdict else "open",
        "value": math.fsum(seeds) / len(seeds) if seeds else None,
        "low": low,
        "high": high,
        "rule": _rule(claim.rule) if claim.rule else None,
        "part": load().topics[claim.topic]["part"],
        "studies": [{field: getattr(study(n), field) for field in STUDY} for n in claim.study],
        "others": others_of(claim.id),
        "source": claim.id[0],
        "url": address(claim.id, build),
    }
    text = json.dumps({name: row[name] for name in COLUMNS}, default=date.isoformat)
    return json.loads(text)


def _rule(rule: Rule) -> dict[str, Any]:
    cases = [dict(zip(("sign", "threshold", "verdict"), case, strict=True)) for case in rule.cases]
    ends = {"otherwise": rule.otherwise, "uncertain": rule.uncertain}
    return {"text": str(rule), "cases": cases} | ends


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
        case {"section": section, **of}:  # a paper
            return f"{of.get('paper') or of['nearest']}: {section}"
        case {"none": why}:
            return why
        case {"when": when, "was": said} | {"when": when, "reply": said}:  # amended, disputed
            return f"{when}: {said}"
        case [*several]:
            return "; ".join(str(_cell(one)) for one in several)
    return value
