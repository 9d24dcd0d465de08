"""A few small probes, for models of any kind, in the place of the package's."""

from pathlib import Path

import torch

from vitlab.claims import run
from vitlab.claims.ledger import Claim
from vitlab.claims.probe import CannotAsk, Measured, Probe
from vitlab.claims.rules import Rule
from vitlab.commands import audit as command

ROOT = Path(__file__).resolve().parents[3]

RULE = Rule.parse({">= 0.3": "holds", ">= 0": "qualified, in part: half", "otherwise": "refuted"})


def claim(name, word, value, **more):
    fields = {
        "statement": f"What {name} says <of> a model.",
        "measure": "A figure.",
        "setting": "cifar10_vit, one model",
        "because": "By convention.",
        "unit": "",
        "format": ".2f",
        "rule": RULE,
        "word": word,
        "verdict": f"{word}: as was found",
        "value": value,
        "low": None,
        "high": None,
        "figure": f"{value:.2f}",
        "url": f"book/ledger.html#{name}",
    }
    return Claim(name, **(fields | more))


CLAIMS = {
    one.id: one
    for one in (
        claim("A01", "holds", 0.4, low=0.35, high=0.45),
        claim("A02", "qualified, in part", 0.1, unit="powers of ten"),
        claim("A03", "refuted", -1.0),
        claim("A04", "holds", 0.5),
        claim("A05", "holds", 0.5),
    )
}


def brightness(subject):
    """The mean of each image, as a figure with an interval."""
    each = subject.images.flatten(1).mean(1)
    return Measured(
        each.mean().item(),
        each,
        baselines={"black": -50.0, "white": 0.6},
        curves={"by row": subject.images.mean((0, 1, 3)), "flat": torch.zeros(3)},
    )


def confidence(subject):
    with torch.no_grad():
        logits = torch.cat([subject.model(x) for x in subject.images.split(subject.batch_size)])
    return Measured(logits.softmax(1).max(1).values.mean().item())


def needs_labels(subject):
    if subject.labels is None:
        raise CannotAsk("it needs images with labels")
    return Measured(subject.labels.double().mean().item())


def random(subject):
    return Measured(torch.rand(1).item())


def broken(subject):
    raise KeyError("blocks\nand more")


def nan(subject):
    return Measured(float("nan"))


PROBES = {
    name: Probe(name, f"Does this model do what {name} says?", measure, slow)
    for name, measure, slow in (
        ("A01", brightness, False),
        ("A02", confidence, False),
        ("A03", needs_labels, False),
        ("A04", random, True),
    )
}


def install(setter):
    """Puts the small probes in the place of the package's; gives the mapping that is read."""
    found = dict(PROBES)
    setter(run, "available", lambda: found)
    setter(command, "claims", lambda: CLAIMS)
    return found
