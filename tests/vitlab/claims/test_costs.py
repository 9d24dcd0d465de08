"""The time that is left: not known before a figure is, and near the truth from then on."""

import json
from dataclasses import replace

import pytest
import torch

import minivit
from tests.vitlab.claims import small
from vitlab.claims import run
from vitlab.claims.answers import Store
from vitlab.claims.costs import COSTS, cost
from vitlab.claims.probe import CannotAsk, Measured, Subject
from vitlab.claims.probes import PROBES
from vitlab.commands import audit as command

STORED = small.ROOT / "book/ledger/models"
# How far what is said may be from the truth: with R24, whose time is not known before, and without.
WIDE, NEAR = (0.25, 2.5), (0.6, 1.4)
VITS = dict.fromkeys(("cifar10_vit", "cifar10_vit_cls", "cifar10_vit_gap", "digits_vit"), WIDE)
VITS |= dict.fromkeys(("timm_deit_small_patch16_224", "vit_b_32"), NEAR)


class Clock:
    """Goes on by what is added to it."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(run, "time", clock)
    return clock


def told(clock, probes, subject, folder, quick=False):
    """After each answer its claim, what is said of the time left, and what is left in truth."""
    at = []

    def tell(answer, left):
        at.append((answer.claim, left, clock.now))

    run.audit(subject, probes, store=Store(folder), conditions={}, quick=quick, tell=tell)
    return [(claim, left, clock.now - then) for claim, left, then in at]


def replayed(clock, stored, folder):
    """An audit in which each claim takes the seconds that it took, with the same outcome."""

    def again(row):
        def measure(subject):
            clock.now += row["seconds"]
            if row["state"] != "measured":
                raise CannotAsk(row["reason"])
            return Measured(0.0)

        return replace(PROBES[row["id"]], measure=measure)

    size, images = stored["images"]["size"], stored["images"]
    subject = Subject(
        minivit.create("vit_8px"),
        torch.zeros(stored["count"], *size),
        labels=torch.zeros(stored["count"]).long() if images["labels"] else None,
        beside=torch.nn.Identity() if stored["beside"] else None,
    )
    probes = [again(row) for row in stored["claims"]]
    return told(clock, probes, subject, folder, "--quick" in stored["command"])


@pytest.mark.parametrize("name", VITS)
def test_what_is_said_early_is_what_stored_audits_took(clock, name, tmp_path):
    stored = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    said = replayed(clock, stored, tmp_path)
    whole = said[0][2]
    early = [(left, truth) for _, left, truth in said if truth > whole / 2]
    assert len(early) > 3
    for left, truth in early:
        assert left is not None and VITS[name][0] < left / truth < VITS[name][1]
    assert said[-1][1] == said[-1][2] == 0


def test_refusals_alone_say_nothing_of_the_time(clock, tmp_path):
    def refuse(subject):
        clock.now += 0.01
        raise CannotAsk("it has no attention")

    def take(subject):
        clock.now += 4.0
        return Measured(0.5)

    probes = [replace(PROBES[name], measure=refuse) for name in ("C13", "L20")]
    probes += [replace(PROBES[name], measure=take) for name in ("H23", "H29", "C22")]
    subject = Subject(torch.nn.Identity(), torch.zeros(16, 3, 2, 2))
    said = told(clock, probes, subject, tmp_path)
    assert [left for _, left, _ in said[:2]] == [None, None]
    assert [left for _, left, _ in said[2:]] == [4 * (32 + 24) / 16, 24 * 8 / 48, 0]


def test_an_audit_that_goes_on_knows_how_long_from_what_it_kept(clock, tmp_path):
    subject = Subject(torch.nn.Identity(), torch.zeros(16, 3, 2, 2))

    def take(subject):
        clock.now += 2.0
        return Measured(0.5)

    def interrupted(subject):
        raise KeyboardInterrupt

    probes = [replace(PROBES[name], measure=take) for name in ("H23", "H04", "C22")]
    with pytest.raises(KeyboardInterrupt):
        told(clock, [*probes[:1], replace(probes[1], measure=interrupted)], subject, tmp_path)
    said = told(clock, probes, subject, tmp_path)
    assert [left for _, left, _ in said] == [2 * (1 + 1.5), 2 * 1.5, 0]


def test_what_will_not_be_asked_takes_no_time():
    images = torch.zeros(10, 3, 2, 2)
    alone = Subject(torch.nn.Identity(), images)
    pair = Subject(minivit.create("vit_8px"), images, torch.zeros(10).long(), None, alone.model)
    expected = {"C11": (0, 15), "H26": (0, 50), "V16": (0, 10), "R24": (0, 4000), "C15": (0, 0)}
    assert {name: (cost(PROBES[name], alone), cost(PROBES[name], pair)) for name in expected} == expected  # fmt: skip
    assert (cost(PROBES["V33"], pair), cost(PROBES["V33"], pair, quick=True)) == (900, 0)


def test_every_cost_is_of_a_probe():
    assert COSTS.keys() <= PROBES.keys()


@pytest.mark.parametrize(("seconds", "said"), [(30.4, "30 s"), (89, "89 s"), (119, "2 min")])
def test_the_time_left_is_printed_in_seconds_or_minutes(seconds, said):
    assert command._minutes(seconds) == said
