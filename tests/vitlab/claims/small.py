"""A few small measurements, for models of any kind, in the place of the package's."""

import torch

from vitlab.claims import audit
from vitlab.claims import measurements as package
from vitlab.claims.ledger import Claim
from vitlab.claims.measuring import Measured, Measurement, NotApplicable
from vitlab.claims.rules import Rule
from vitlab.commands import audit as command

RULE = Rule.parse({">= 0.3": "holds", ">= 0": "qualified, in part: half", "otherwise": "refuted"})


def claim(name, word, value, low=None, high=None, unit="", proved=False):
    statement, question = f"What {name} says <of> a model.", f"Does this model do {name}?"
    about = (statement, question, "A figure.", "cifar10_vit, one model", "By convention.")
    verdict, url = f"{word}: in the book", f"book/ledger.html#{name}"
    book = (word, verdict, value, low, high, f"{value:.2f}", url)
    return Claim(name, *about, unit, ".2f", RULE, proved, *book)


CLAIMS = {
    "A01": claim("A01", "holds", 0.4, low=0.35, high=0.45),
    "A02": claim("A02", "qualified, in part", 0.1, unit="powers of ten"),
    "A03": claim("A03", "refuted", -1.0),
    "A04": claim("A04", "holds", 0.5, proved=True),
    "A05": claim("A05", "holds", 0.5),
}


def brightness(subject):
    """The mean of each image, as a figure with an interval."""
    each = subject.images.flatten(1).mean(1)
    curves = {"by row": subject.images.mean((0, 1, 3)), "flat": torch.zeros(3)}
    return Measured(each.mean().item(), each, {"black": -50.0, "white": 0.6}, curves)


def confidence(subject):
    with torch.no_grad():
        logits = torch.cat([subject.model(x) for x in subject.images.split(subject.batch_size)])
    return Measured(logits.softmax(1).max(1).values.mean().item())


def mean_label(subject):
    if subject.labels is None:
        raise NotApplicable("it needs images with labels")
    return Measured(subject.labels.double().mean().item())


def raising(error):
    """A measurement that fails."""

    def measure(subject):
        raise error

    return measure


def random(subject):
    return Measured(torch.rand(1).item())


FUNCTIONS = {"A01": brightness, "A02": confidence, "A03": mean_label, "A04": random}


def install(setter):
    """Puts the small measurements in the place of the package's; gives the mapping that is read."""
    measurements = {
        name: Measurement(function, function is random, untrained=function is confidence)
        for name, function in FUNCTIONS.items()
    }
    setter(package, "MEASUREMENTS", measurements)
    for module in (audit, command):
        setter(module, "claims", lambda: CLAIMS)
    return measurements
