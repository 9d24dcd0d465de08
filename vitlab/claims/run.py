"""Asking claims of a model, one after another, each kept as soon as it is answered."""

import hashlib
import json
import pkgutil
import re
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import torch
from torch import nn

from minivit.files import fingerprint
from vitlab.claims.answers import Answer, Store
from vitlab.claims.costs import Pace, cost
from vitlab.claims.probe import PROBES, CannotAsk, Probe, Subject
from vitlab.claims.refusal import MODELS, PACKAGE, fault, first_line, out_of_memory


def available() -> Mapping[str, Probe]:
    """Every probe of the package, by claim."""
    package = import_module("vitlab.claims.probes")
    for module in pkgutil.iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return PROBES


def chosen(names: str) -> list[Probe]:
    """The probes of claims given as ``"R46,V33"``, in that order; all where none is given.

    Raises:
        ValueError: A claim has no probe.
    """
    probes = available()
    wanted = [name.strip().upper() for name in names.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in probes]:
        raise ValueError(
            f"expected claims with a probe, among {', '.join(sorted(probes))}: "
            f"got {', '.join(unknown)}"
        )
    return [probes[name] for name in dict.fromkeys(wanted)] or list(probes.values())


def about(model: nn.Module) -> dict[str, Any]:
    """What a model is: its class, its size, and the hashes of its weights and of its modules."""
    modules = re.sub(r" at 0x[0-9a-f]+", "", repr(model))  # addresses of functions
    return {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "parameters": sum(p.numel() for p in model.parameters()),
        "weights": fingerprint(model.state_dict(), {}),
        "modules": hashlib.sha256(modules.encode()).hexdigest(),
    }


def code() -> str:
    """The hash of the package's own code: an answer of other code is asked again."""
    found = hashlib.sha256()
    for path in sorted([*PACKAGE.rglob("*.py"), *MODELS.rglob("*.py")]):
        found.update(path.relative_to(MODELS.parent).as_posix().encode() + path.read_bytes())
    return found.hexdigest()


def key(claim: str, conditions: Mapping[str, Any]) -> str:
    """The hash of all that an answer depends on."""
    return hashlib.sha256(json.dumps([claim, conditions], sort_keys=True).encode()).hexdigest()


def ask(probe: Probe, subject: Subject, seed: int) -> Answer:
    """Asks one claim. Whatever a probe does, there is an answer, without a figure if it must be."""
    began = time.monotonic()
    devices = [subject.images.device] if subject.images.is_cuda else []
    try:
        with torch.random.fork_rng(devices):
            torch.manual_seed(seed)
            measured = probe.measure(subject)
        return Answer.of(probe.claim, measured, round(time.monotonic() - began, 2))
    except Exception as error:
        state, why = "failed", fault(error)
        if isinstance(error, CannotAsk) and not out_of_memory(error):
            state, why = "cannot be asked", first_line(error)
        return Answer(probe.claim, state, why, seconds=round(time.monotonic() - began, 2))


def audit(
    subject: Subject,
    probes: Iterable[Probe],
    *,
    store: Store,
    conditions: Mapping[str, Any],
    seed: int = 0,
    quick: bool = False,
    tell: Callable[[Answer, float | None], None] = lambda answer, left: None,
    warn: Callable[[str], None] = lambda what: None,
) -> list[Answer]:
    """Asks claims of a model, one after another.

    Args:
        conditions: All that the answers depend on: hashes of weights, images and code, and so on.
        quick: Leave out what is slow.
        tell: Called after each answer, with the seconds that are probably left, or None while that
            is not known.
        warn: Called with a sentence about a kept answer that is damaged, and asked again.
    """
    probes, answers = list(probes), []
    to_ask = [cost(probe, subject, quick) for probe in probes]
    pace = Pace()
    for i, probe in enumerate(probes):
        this = key(probe.claim, conditions)
        kept = None
        try:
            kept = store.get(probe.claim, this)
        except ValueError as error:
            warn(f"{error}: asked again")
        if kept is None and quick and probe.slow:
            kept = Answer(probe.claim, "left out", "it takes long, so --quick leaves it out")
        answer = kept or ask(probe, subject, seed)
        if kept is None and answer.state != "failed":  # which another try may mend
            store.put(answer, this)
        if answer.state == "measured":
            pace.note(to_ask[i], answer.seconds)
        answers.append(answer)
        tell(answer, pace.left(sum(to_ask[i + 1 :])))
    return answers
