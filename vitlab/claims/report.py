"""An audit as data, which its page and its tables are made from.

``audit.schema.json`` beside this file says what each field means.
"""

import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

import minivit
from vitlab.claims.answers import STATES, Answer
from vitlab.claims.images import Images
from vitlab.claims.ledger import AGREEMENTS, Claim, agreement
from vitlab.claims.probe import Probe
from vitlab.extras import installed

SCHEMA = Path(__file__).with_name("audit.schema.json")
FORMAT = 1  # of the data
PACKAGES = ("torchvision", "timm", "transformers", "open_clip_torch", "numpy", "scipy")


def versions() -> dict[str, str]:
    """The versions of what computes figures here."""
    return {
        "minivit": minivit.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        **installed(PACKAGES),
    }


def report(
    answers: Iterable[Answer],
    probes: Mapping[str, Probe],
    claims: Mapping[str, Claim],
    *,
    model: Mapping[str, Any],
    beside: Mapping[str, Any] | None,
    images: Images,
    **made: Any,
) -> dict[str, Any]:
    """An audit as JSON takes it; ``made`` says how it was made: command, date, device, ..."""
    rows = [_row(answer, probes[answer.claim], claims[answer.claim]) for answer in answers]
    return {
        "format": FORMAT,
        "model": dict(model),
        "beside": dict(beside) if beside else None,
        "images": {
            "source": images.source,
            "count": len(images.pixels),
            "size": list(images.pixels.shape[1:]),
            "sha256": images.sha256,
            "labels": images.labels is not None,
            "unlabelled": images.unlabelled,
            "skipped": list(images.skipped),
            "worth": images.worth,
        },
        **made,
        "states": {state: sum(row["state"] == state for row in rows) for state in STATES},
        "agreement": _counted(rows),
        "claims": rows,
    }


def _counted(rows: list[dict[str, Any]]) -> dict[str, int]:
    found = Counter(row["agreement"] for row in rows)
    return {name: found[name] for name in AGREEMENTS}


def _row(answer: Answer, probe: Probe, claim: Claim) -> dict[str, Any]:
    """An answer beside what the book says of the claim."""
    word = low = high = None
    if answer.figure is not None:
        word = claim.decide(answer.figure, answer.half or 0.0)
        if answer.half is not None:
            low, high = answer.figure - answer.half, answer.figure + answer.half
    return {
        "id": claim.id,
        "asks": probe.asks,
        "statement": claim.statement,
        "state": answer.state,
        "reason": answer.reason,
        "figure": answer.figure,
        "low": low,
        "high": high,
        "count": answer.count,
        "unit": claim.unit,
        "printed": "" if answer.figure is None else claim.printed(answer.figure),
        "word": word,
        "agreement": agreement(word, claim.word) if word else None,
        "baselines": dict(answer.baselines),
        "curves": {name: list(line) for name, line in answer.curves.items()},
        "rule": str(claim.rule),
        "because": claim.because,
        "book": {
            "word": claim.word,
            "verdict": claim.verdict,
            "value": claim.value,
            "low": claim.low,
            "high": claim.high,
            "printed": claim.figure,
            "measure": claim.measure,
            "setting": claim.setting,
            "url": claim.url,
        },
        "seconds": answer.seconds,
    }
