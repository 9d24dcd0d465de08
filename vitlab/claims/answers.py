"""The answer to one claim for one model, and where it is kept until the audit is done."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from minivit.files import replacing
from vitlab.claims.interval import half_width
from vitlab.claims.probe import Measured

FOLDER = "answers"  # inside the audit's
STATES = ("measured", "cannot be asked", "failed", "left out")


@dataclass(frozen=True)
class Answer:
    """The answer to one claim.

    Args:
        state: One of ``STATES``.
        reason: Why there is no figure; empty where there is one.
        half: Half the figure's 95 % interval over images, or None where there is no interval.
        count: How many images, or groups of images, the interval is over.
        seconds: That the measurement took.
    """

    claim: str
    state: str
    reason: str = ""
    figure: float | None = None
    half: float | None = None
    count: int = 0
    baselines: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, list[float | None]] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def of(cls, claim: str, measured: Measured, seconds: float) -> "Answer":
        """The answer that a measurement gives: none where a number in it is not finite."""
        each = None if measured.each is None else measured.each.detach().cpu().double().numpy()
        figure = float(measured.figure)
        why = ""
        if not math.isfinite(figure):
            why = f"its figure is not a finite number: {figure}"
        elif each is not None and not math.isfinite(each.sum()):
            why = "its figure is not a finite number for some of the images"
        if why:
            return cls(claim, "cannot be asked", why, seconds=seconds)
        several = each is not None and len(each) > 1
        finite_baselines = {n: float(x) for n, x in measured.baselines.items() if math.isfinite(x)}
        return cls(
            claim,
            "measured",
            figure=figure,
            half=half_width(each) if each is not None and several else None,
            count=len(each) if each is not None and several else 0,
            baselines=finite_baselines,
            curves={name: _finite(line) for name, line in measured.curves.items()},
            seconds=seconds,
        )


def _finite(line: Float[Tensor, "layers"]) -> list[float | None]:
    """A curve, with None where it has no number: JSON knows no NaN."""
    return [x if math.isfinite(x) else None for x in line.tolist()]


class Store:
    """Answers in files, each written whole, so that a killed audit can resume."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)

    def put(self, answer: Answer, key: str) -> None:
        """Keeps an answer to a question, of which the key says all that it depends on."""
        content = {"key": key, "answer": asdict(answer)}
        text = json.dumps({"sha256": _sealed(content), **content}, indent=1)
        with replacing(self._path(answer.claim)) as scratch:
            scratch.write_text(text, encoding="utf-8")

    def get(self, claim: str, key: str) -> Answer | None:
        """The answer to this very question, or None where there is none.

        Raises:
            ValueError: The file is damaged, or was changed by hand.
        """
        path = self._path(claim)
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            seal = content.pop("sha256")
            answer = Answer(**content["answer"])
            if seal != _sealed(content) or answer.claim != claim or answer.state not in STATES:
                raise ValueError("its checksum is not that of its content")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} is damaged ({error})") from error
        return answer if content["key"] == key else None

    def _path(self, claim: str) -> Path:
        return self.folder / f"{claim}.json"


def _sealed(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
