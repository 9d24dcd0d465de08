"""What any measurement does: a finite figure, or a sentence why there is none."""

import copy
import math
import re
from functools import cache

import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

import minivit
from tests.parity import draw
from tests.vitlab.claims.planted import digits, outcome
from tests.vitlab.claims.small import raising
from tests.vitlab.tried.architectures import ARCHITECTURES, TIMM, of_timm
from tests.vitlab.tried.table import built
from vitlab.claims.measurements import MEASUREMENTS, ask
from vitlab.claims.measurements.attention import rank_correlation
from vitlab.claims.measuring import Measured, Measurement, NotApplicable, Subject


@cache
def noise():
    """A ViT and images, with a ResNet beside it, and labels of which the ViT has none right."""
    model = minivit.load("cifar10_vit_gap")
    images = torch.randn(20, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    labels = (model(images).argmax(1) + 1) % 10
    options = {"labels": labels, "beside": minivit.load("cifar10_resnet"), "white": (4.0,) * 3}
    return model, images, options


COMPARING = ("C11", "C12", "C20", "H26", "H27", "H32", "R29", "R31", "V14")
REFUSALS = [
    *((name, {"beside": None}, "needs a second model: --beside NAME") for name in COMPARING),
    *((name, {"beside": "itself"}, "of these, both have it") for name in COMPARING),
    *((name, {"beside": "the first"}, "of these, the second has it") for name in COMPARING),
    *((name, {"labels": None}, "needs the class of each image") for name in ("H26", "H27", "V16")),
    ("H27", {"white": None}, "for black and for white"),
    ("H26", {}, "no more often than by chance"),
    ("C15", {}, "needs 1,000 images"),
    ("C17", {}, "this model has attention"),
    ("H04", {}, "no 3 x 3 convolution"),
]


@pytest.mark.full
def test_what_a_claim_needs_is_said_and_a_figure_that_is_no_number_is_none():
    for name, change, reason in REFUSALS:
        model, images, options = noise()
        options = options | change
        if options["beside"] == "the first":  # a pair counts once
            model, options["beside"] = minivit.load("cifar10_resnet"), model
        options["beside"] = model if options["beside"] == "itself" else options["beside"]
        assert reason in outcome(name, model, images, **options), name
    among = Measured(0.2, torch.tensor([0.2, math.nan]))
    for bad in Measured(math.nan), Measured(math.inf), among:
        with pytest.raises(NotApplicable, match="not a finite number"):
            measured(lambda subject, bad=bad: bad)


def measured(function, **more):
    subject = Subject(nn.Identity(), torch.zeros(1, 3, 4, 4), **more)
    return Measurement(function, untrained=True).measure(subject)


def test_an_error_is_a_refusal_or_the_audit_s_own(monkeypatch):
    for error, state, reason in (
        (NotApplicable("needs\nmore"), "cannot be asked", "needs"),
        (ValueError("no grid"), "cannot be asked", "no grid (small.py, line "),
        (TypeError(""), "cannot be asked", "TypeError (small.py, line "),
        (NotImplementedError("no doubles"), "cannot be asked", "no doubles (small.py, line "),
        (LookupError("blocks.7"), "failed", "an error in the audit: LookupError: blocks.7"),
        (AssertionError(), "failed", "an error in the audit: AssertionError"),
        (MemoryError(), "failed", "out of memory: try a smaller --batch-size"),
        (torch.OutOfMemoryError("CUDA out of memory"), "failed", "out of memory: try"),
    ):
        monkeypatch.setitem(MEASUREMENTS, "X01", Measurement(raising(error)))
        row = ask("X01", Subject(nn.Identity(), torch.zeros(1, 3, 4, 4)), 0)
        assert row["state"] == state and row["reason"].startswith(reason)


def test_a_model_before_training_is_asked_too_where_it_has_a_figure():
    def twin_of(function):
        def either(subject):
            return Measured(0.5) if subject.untrained else function(subject)

        return measured(either, untrained=nn.Identity).untrained

    assert twin_of(lambda subject: Measured(0.1)) == Measured(0.1)
    assert twin_of(lambda subject: Measured(math.nan)) is twin_of(raising(ValueError())) is None
    with pytest.raises(KeyError):
        twin_of(raising(KeyError()))


def test_groups_have_the_mean_that_all_have_and_rank_correlation_is_spearmans():
    model, images, _ = digits(18)
    for name in ("C13", "L20", "H29", "C04"):
        whole = MEASUREMENTS[name].measure(Subject(model, images))
        few = MEASUREMENTS[name].measure(Subject(model, images[:15]))
        assert (len(whole.each), len(few.each)) in ((4, 1), (18, 15))
    assert whole.each.mean().item() == pytest.approx(whole.figure)
    draws = torch.Generator().manual_seed(0)
    a, b = torch.randint(0, 6, (2, 5, 9), generator=draws).double()
    known = [spearmanr(x, y).statistic for x, y in zip(a, b, strict=True)]
    torch.testing.assert_close(rank_correlation(a, b), torch.tensor(known, dtype=torch.float64))
    assert rank_correlation(a, torch.ones_like(a)).abs().max() == 0


def test_attention_beside_the_mlp_is_asked_what_is_said_of_whole_blocks():
    model = draw(of_timm("vit_pwee_patch16_reg1_gap_256", **TIMM)())
    images = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    for claim in ("C04", "C13", "L10", "L20", "R43", "V17", "V28", "V30"):
        assert math.isfinite(MEASUREMENTS[claim].measure(Subject(model.eval(), images)).figure)


OTHERS = "timm ViT with registers", "HF DINOv3", "torchvision ResNet"


@pytest.mark.parametrize(
    "name", ["timm Swin", *(pytest.param(name, marks=pytest.mark.full) for name in OTHERS)]
)
def test_every_measurement_gives_a_figure_or_a_reason_and_leaves_the_model_as_it_was(name):
    about, beside = ARCHITECTURES[name], minivit.create("resnet_32px", width=8).eval()
    (model, _), draws = built(about), torch.Generator().manual_seed(0)
    images = torch.randn(4, 3, *about.size, generator=draws)
    labels = torch.zeros(4, dtype=torch.int64)
    subject = Subject(model, images, labels, lambda: model, beside, (4.0,) * 3, 4)
    before = copy.deepcopy(model.state_dict())
    for claim, measurement in MEASUREMENTS.items():
        if measurement.slow:
            continue
        try:
            result = measurement.measure(subject)
        except NotApplicable as error:
            assert re.search(r"\w+ \w+", str(error)) and "\n" not in str(error), claim
            continue
        assert math.isfinite(result.figure), claim
        assert result.each is None or result.each.isfinite().all(), claim
        assert all(math.isfinite(value) for value in result.baselines.values()), claim
        assert all(line.ndim == 1 for line in result.curves.values()), claim
    assert all(torch.equal(t, before[key]) for key, t in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
