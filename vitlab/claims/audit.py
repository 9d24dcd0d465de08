"""An audit: claims asked of one model, one after another, each kept as soon as it is answered."""

import hashlib
import json
import platform
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import nn

import minivit
from minivit.files import fingerprint
from minivit.preprocessing import Preprocess
from vitlab.calls import expect
from vitlab.claims.images import images_for
from vitlab.claims.ledger import AGREEMENTS, FORMAT, claims, half_of
from vitlab.claims.measurements import ask
from vitlab.claims.measuring import Subject, why_not
from vitlab.convert.open_model import open_any
from vitlab.extras import device_of, installed
from vitlab.training.state import write

STATES = ("measured", "cannot be asked", "failed", "left out")
PACKAGES = ("torchvision", "timm", "transformers", "open_clip_torch", "numpy", "scipy")
# How far a claim measured again may be off its stored figure: fractions of it and its interval.
ROUNDING, OF_THE_INTERVAL = 1e-3, 0.1


class Audit:
    """A model, perhaps another beside it, and images that both read: what claims are asked of."""

    def __init__(
        self,
        model: str,
        *,
        images: str = "",
        count: int = 64,
        beside: str = "",
        untrained: bool = False,
        device: str = "auto",
        batch_size: int = 8,
        seed: int = 0,
    ) -> None:
        torch.manual_seed(seed)  # for an untrained model
        opened, other = open_any(model, untrained), open_any(beside) if beside else None
        same = other is None or other.preprocess == opened.preprocess
        expect(same, "two models that read the same images", f"{model} and {beside}")
        self.images = images_for(opened, images, count, seed)
        self.seed, self.count = seed, count
        pixels = self.images.pixels.to(device_of(device))
        for each in (opened, other) if other else (opened,):
            why = why_not(each.model.to(pixels.device), pixels[:batch_size])
            runs = f"a model {each.name} that runs on images {list(pixels.shape[1:])}"
            expect(not why, runs, why)
        make, scaled = None if untrained else opened.untrained, opened.preprocess
        self.subject = Subject(
            opened.model,
            pixels,
            labels=self.images.labels,
            untrained=(lambda: make().to(pixels.device)) if make else None,
            beside=other.model if other else None,
            white=tuple(1 / x for x in scaled.std) if isinstance(scaled, Preprocess) else None,
            batch_size=batch_size,
        )
        name = {"name": model, "licence": opened.licence, "untrained": untrained}
        self.conditions: dict[str, Any] = {  # under which an answer that is kept holds
            "format": FORMAT,
            "model": name | about(opened.model),
            "beside": {"name": beside, **about(other.model)} if other else None,
            "images": self.images.sha256,
            "seed": seed,
            "device": str(pixels.device),
            "versions": {
                "minivit": minivit.__version__,
                "python": platform.python_version(),
                "torch": torch.__version__,
                **installed(PACKAGES),
            },
        }

    def answers(
        self, names: Iterable[str], kept: Path, quick: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Asks claims one after another, and keeps the answers in a file, which is written whole.

        Answers there under the same conditions are not asked again, unless they failed.
        """
        rows: dict[str, Any] = {}
        with suppress(OSError, ValueError, TypeError, KeyError):  # none yet, or it is no such file
            content = json.loads(kept.read_text(encoding="utf-8"))
            rows = content["answers"] if content["conditions"] == self.conditions else {}
        for name in names:
            row = rows.get(name) or ask(name, self.subject, self.seed, quick)
            if name not in rows and row["state"] in ("measured", "cannot be asked"):
                rows[name] = row
                content = {"conditions": self.conditions, "answers": rows}
                write(kept, json.dumps(content))
            yield row

    def report(self, answers: Iterable[Mapping[str, Any]], command: str) -> dict[str, Any]:
        """The audit as JSON takes it, which its page and its tables are made from."""
        rows = [_with_book(answer) for answer in answers]
        states = Counter(row["state"] for row in rows)
        counted = [row for row in rows if row["state"] == "measured" and not row["proved"]]
        before = [row["untrained"] for row in counted if row["untrained"]]
        count, *size = self.images.pixels.shape
        fields = ("source", "sha256", "unlabelled", "skipped", "worth", "suit")
        images = {name: getattr(self.images, name) for name in fields}
        images |= {"count": count, "size": size, "labels": self.images.labels is not None}
        return {
            **self.conditions,
            "images": images,
            "count": self.count,
            "command": command,
            "date": date.today().isoformat(),
            "states": {state: states[state] for state in STATES},
            "proved": states["measured"] - len(counted),
            "agreement": _sums(counted) if self.images.suit else None,
            "untrained": _sums(before) if self.images.suit and before else None,
            "claims": rows,
        }

    def differences(self, stored: Mapping[str, Any], names: Iterable[str]) -> list[str]:
        """What is not as in a stored audit when these claims are measured again."""
        now = {"weights": self.conditions["model"]["weights"], "images": self.images.sha256}
        then = {"weights": stored["model"]["weights"], "images": stored["images"]["sha256"]}
        differ = [what for what in now if now[what] != then[what]]
        problems = [f"the {w} differ: {then[w][:16]} there, {now[w][:16]} here" for w in differ]
        rows = {row["id"]: row for row in stored["claims"]}
        for name in names:
            there = rows[name]["figure"] if name in rows else None
            here = ask(name, self.subject, self.seed)["figure"]
            if here is None or there is None:
                problems.append(f"{name} is {here} here, and {there} there")
                continue
            allowed = max(ROUNDING * max(abs(there), 1e-6), OF_THE_INTERVAL * half_of(rows[name]))
            if abs(here - there) > allowed:
                what = f"{name} is {here:.6g} here, and {there:.6g} there"
                problems.append(f"{what}: expected a difference of at most {allowed:.2g}")
        return problems


def about(model: nn.Module) -> dict[str, Any]:
    """What a model is: its class, its size, and the hashes of its weights and of its modules."""
    modules = re.sub(r" at 0x[0-9a-f]+", "", repr(model))  # addresses of functions
    return {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "parameters": sum(p.numel() for p in model.parameters()),
        "weights": fingerprint(model.state_dict(), {}),
        "modules": hashlib.sha256(modules.encode()).hexdigest(),
    }


def _sums(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many of the words agree with the book's, and in which way."""
    found = Counter(row["agreement"] for row in rows)
    return {name: found[name] for name in AGREEMENTS}


def _with_book(row: Mapping[str, Any]) -> dict[str, Any]:
    """An answer with what the book says of the claim."""
    claim, before = claims()[row["id"]], row["untrained"]
    direction = None
    if before:
        gap, noise = row["figure"] - before["figure"], half_of(row) + half_of(before)
        direction = "alike" if abs(gap) <= noise else "above" if gap > 0 else "below"
    book = ("word", "verdict", "value", "low", "high", "measure", "setting", "url")
    return {
        **row,
        "asks": claim.question,
        "statement": claim.statement,
        "unit": claim.unit,
        "proved": claim.proved,
        **claim.judge(row),
        "untrained": before and {**before, **claim.judge(before)},
        "direction": direction,
        "rule": str(claim.rule),
        "because": claim.because,
        "book": {"printed": claim.figure} | {name: getattr(claim, name) for name in book},
    }
