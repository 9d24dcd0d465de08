"""``minivit audit``."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch
from tyro.conf import FlagCreatePairsOff, Positional

from vitlab.claims.answers import Answer, Store
from vitlab.claims.check import compare, same_inputs
from vitlab.claims.images import Images, images_for
from vitlab.claims.ledger import claims
from vitlab.claims.looks import looks
from vitlab.claims.page import html, markdown, summary
from vitlab.claims.probe import Probe, Subject
from vitlab.claims.report import report, versions
from vitlab.claims.run import about, audit, chosen, code
from vitlab.claims.stored import read
from vitlab.claims.subject import subject_of, together
from vitlab.commands.command import Command, complain, write
from vitlab.convert.loaded_model import LoadedModel
from vitlab.convert.open_model import open_any
from vitlab.extras import extra
from vitlab.training.defaults import device_of


@dataclass(kw_only=True)
class Audit(Command):
    """Measure the claims of the book's ledger on any model."""

    model: Positional[str] = ""
    """timm:NAME, hf:NAME, torchvision:NAME, a name that `models` lists, a file or the folder of a
    training, or module:function of your own"""
    images: str = ""
    """a folder of images, of each class in a folder of its own if they have classes; or DIGITS,
    CIFAR10, SHAPES (default: generated shapes and photographs)"""
    count: int = 64  # images at most
    claims: str = ""  # such as R46,V33 (default: all that have a probe)
    quick: FlagCreatePairsOff[bool] = False  # leave out what takes long
    beside: str = ""  # another model that reads the same images, for claims that compare two
    untrained: FlagCreatePairsOff[bool] = False  # the architecture with its weights before training
    out: Path | None = None  # folder (None: audits/MODEL); answers in it are kept
    batch_size: int = 8  # images at a time, which bounds the memory
    seed: int = 0  # of what is random
    check: Path | None = None
    """instead of a model: a stored audit, of which --claims, or the quickest, are measured again"""

    def run(self, typed: str) -> int:
        if bool(self.model) == bool(self.check):
            raise ValueError("expected a model, or a stored audit after --check, and not both")
        return self._check(read(self.check)) if self.check else self._audit(typed)

    def _audit(self, typed: str) -> int:
        with extra("audit"):  # before hours of work
            import jinja2  # noqa: F401
        probes = chosen(self.claims)
        opened, beside = self._open()
        images = images_for(opened, self.images, self.count, self.seed)
        out = self.out or Path("audits", re.sub(r"[^\w.-]+", "_", self.model))
        subject = self._subject(opened, beside, images)
        model = {"name": self.model, "licence": opened.licence, "untrained": self.untrained}
        model |= about(opened.model)
        other = {"name": self.beside, **about(beside.model)} if beside else None
        made: dict[str, Any] = {"seed": self.seed, "device": str(subject.images.device)}
        made |= {"versions": versions(), "code": code()}
        conditions = {**made, "model": model, "beside": other, "images": images.sha256}
        answers = self._ask(subject, probes, Store(out), conditions)
        made |= {"count": self.count, "command": typed, "date": date.today().isoformat()}
        by_claim = {probe.claim: probe for probe in probes}
        told = report(answers, by_claim, claims(), model=model, beside=other, images=images, **made)
        write(out / "audit.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")
        write(out / "audit.md", markdown(told))
        write(out / "audit.html", html(told, claims(), *looks(opened.model, subject.images)))
        print(f"{summary(told)}\nWritten to {out}: audit.html, audit.json, audit.md")
        return 1 if told["states"]["failed"] else 0

    def _open(self) -> tuple[LoadedModel, LoadedModel | None]:
        torch.manual_seed(self.seed)  # for an untrained model
        opened = open_any(self.model, self.untrained)
        beside = open_any(self.beside) if self.beside else None
        if beside:
            together(opened, beside)
        return opened, beside

    def _subject(self, opened: LoadedModel, beside: LoadedModel | None, images: Images) -> Subject:
        for skipped in images.skipped:
            print(f"left out: {skipped}", file=sys.stderr)
        return subject_of(opened, beside, images, device_of(self.device), self.batch_size)

    def _ask(
        self, subject: Subject, probes: list[Probe], store: Store, conditions: Mapping[str, Any]
    ) -> list[Answer]:
        """Asks with a bar on standard error, and a line for each answer."""
        with extra("train"):
            from tqdm import tqdm
        hidden = not sys.stderr.isatty()
        with tqdm(total=len(probes), unit="claim", leave=False, disable=hidden) as bar:

            def say(what: str) -> None:
                bar.write(what, file=sys.stderr)

            def tell(answer: Answer, left: float | None) -> None:
                said = answer.reason
                if answer.figure is not None:
                    said = claims()[answer.claim].printed(answer.figure)
                more = f" (about {_minutes(left)} left)" if left is not None and left >= 1 else ""
                say(f"{answer.claim}  {answer.state}: {said}{more}")
                bar.update()

            try:
                return audit(
                    subject,
                    probes,
                    store=store,
                    conditions=conditions,
                    seed=self.seed,
                    quick=self.quick,
                    tell=tell,
                    warn=say,
                )
            except KeyboardInterrupt:
                say("Interrupted. Answers so far are kept: the same command continues.")
                raise

    def _check(self, stored: Mapping[str, Any]) -> int:
        """Measures claims of a stored audit again, or the quickest of them, and compares."""
        self.model, self.untrained = stored["model"]["name"], stored["model"]["untrained"]
        self.beside = (stored["beside"] or {}).get("name", "")
        self.images = self.images or stored["images"]["source"]
        self.count, self.seed = stored["count"], stored["seed"]
        rows = [row for row in stored["claims"] if row["state"] == "measured"]
        probes = chosen(self.claims or min(rows, key=lambda row: row["seconds"])["id"])
        opened, beside = self._open()
        images = images_for(opened, self.images, self.count, self.seed)
        problems = same_inputs(stored, about(opened.model), images.sha256)
        subject = self._subject(opened, beside, images)
        for probe in probes:
            problems += compare(stored, probe, subject, self.seed)
        for problem in problems:
            complain(problem)
        if not problems:
            names = ", ".join(probe.claim for probe in probes)
            print(f"{self.check}: {names} measured again, with the same result")
        return 1 if problems else 0


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
