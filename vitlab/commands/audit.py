"""``minivit audit``, and its report as a page that stands alone and as tables for an appendix."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import FlagCreatePairsOff, Positional

from vitlab import rendering
from vitlab.calls import expect
from vitlab.claims import audit
from vitlab.claims.ledger import AGREE, AGREEMENTS, claims, measured, read
from vitlab.claims.measurements import chosen
from vitlab.commands.command import Command, complain, write
from vitlab.extras import extra

MEANS = {  # of the states without a figure
    "cannot be asked": "could not be asked of this model",
    "failed": "failed",
    "left out": "left out",
}


@dataclass(kw_only=True)
class Audit(Command):
    """Measure the claims of the book's ledger on any model."""

    model: Positional[str] = ""
    """timm:NAME, hf:NAME, torchvision:NAME, a name that `models` lists, a file or the folder of a
    training, or module:function of your own"""
    images: str = ""
    """a folder of images, of each class in a folder of its own if they have classes; or DIGITS,
    CIFAR10, SHAPES, PHOTOGRAPHS (default: generated shapes, and crops of photographs)"""
    count: int = 64  # images at most
    claims: str = ""  # such as R46,V33 (default: all that can be measured on one model)
    quick: FlagCreatePairsOff[bool] = False  # leave out what takes long
    beside: str = ""  # another model that reads the same images, for claims that compare two
    untrained: FlagCreatePairsOff[bool] = False  # the architecture with its weights before training
    out: Path | None = None  # folder (None: audits/MODEL); answers in it are kept
    batch_size: int = 8  # images at a time, which bounds the memory
    seed: int = 0  # of what is random
    check: Path | None = None
    """instead of a model: a stored audit, of which --claims, or the quickest, are measured again"""

    def run(self, typed: str) -> int:
        one = bool(self.model) != bool(self.check)
        expect(one, "a model, or a stored audit after --check", "both" if self.model else "neither")
        if self.check:
            return self._check(read(self.check))
        with extra("audit"):  # before hours of work
            import scipy  # noqa: F401
        names, opened = chosen(self.claims), self._open()
        out = self.out or Path("audits", re.sub(r"[^\w.-]+", "_", self.model))
        out.mkdir(parents=True, exist_ok=True)
        answers = []
        for answer in opened.answers(names, out / "answers.json", self.quick):
            answers.append(answer)
            figure, claim = answer["figure"], claims()[answer["id"]]
            result = answer["reason"] if figure is None else claim.printed(figure)
            print(f"{claim.id}  {answer['state']}: {result}", file=sys.stderr)
        report = opened.report(answers, typed)
        write(out / "audit.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
        for ending in ("html", "md"):
            write(out / f"audit.{ending}", rendered(report, ending))
        print(f"{summary(report)}\nWritten to {out}: audit.html, audit.json, audit.md")
        return 1 if report["states"]["failed"] else 0

    def _open(self) -> audit.Audit:
        options = ("images", "count", "beside", "untrained", "device", "batch_size", "seed")
        opened = audit.Audit(self.model, **{name: getattr(self, name) for name in options})
        for skipped in opened.images.skipped:
            print(f"left out: {skipped}", file=sys.stderr)
        return opened

    def _check(self, stored: Mapping[str, Any]) -> int:
        """Measures claims of a stored audit again, or the quickest of them, and compares."""
        self.model, self.untrained = stored["model"]["name"], stored["model"]["untrained"]
        self.beside = (stored["beside"] or {}).get("name", "")
        self.images = self.images or stored["images"]["source"]
        self.count, self.seed = stored["count"], stored["seed"]
        quickest = min(measured(stored), key=lambda row: row["seconds"])["id"]
        names = chosen(self.claims or quickest)
        problems = self._open().differences(stored, names)
        for problem in problems:
            complain(problem)
        if not problems:
            print(f"{self.check}: {', '.join(names)} measured again, with the same result")
        return 1 if problems else 0


def summary(report: Mapping[str, Any]) -> str:
    """The outcome, in a sentence."""

    def ratio(counts: Mapping[str, int]) -> str:
        return f"{sum(counts[name] for name in AGREE)} of {sum(counts.values())}"

    return rendering.rendered("audit.txt", report=report, ratio=ratio, means=MEANS)


def rendered(report: Mapping[str, Any], ending: str) -> str:
    """The audit as ``"html"``, the page, or as ``"md"``, its tables."""
    return rendering.rendered(
        f"audit.{ending}",
        report=report,
        measured=measured(report),
        unmeasured=[row for row in report["claims"] if row["state"] != "measured"],
        summary=summary(report),
        agreements=AGREEMENTS,
        means=MEANS,
        interval=_interval,
    )


def _interval(row: Mapping[str, Any]) -> str:
    """The 95 % interval of a claim's figure."""
    if row["low"] is None:
        return ""
    low, high = (f"{row[end]:.3g}" for end in ("low", "high"))
    return f"{low} to {high}" if low != high else "narrower than the digits shown"
