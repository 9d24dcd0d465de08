"""What any probe does: a finite figure, or a sentence why there is none."""

import math
import re

import pytest
import timm
import torch
import torchvision
from torch import nn

import minivit
from tests.vitlab.claims.planted import asked, digits
from tests.vitlab.instruments.test_architectures import HF, REFUSED, WORK, built, hf, of_timm
from vitlab.claims.probe import PROBES, CannotAsk, Measured, Subject, probe
from vitlab.claims.probes.attention import rank_correlation

COMPARING = ("C11", "C12", "C20", "H26", "H27", "H32", "R29", "R31", "V14")
WITH_LABELS = ("H26", "H27", "V16")


@pytest.fixture
def registered(monkeypatch):
    """Registers a probe for the length of a test."""
    monkeypatch.setattr("vitlab.claims.probe.PROBES", {})
    return probe("X01", "?")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_figure_that_is_no_number_is_none(registered, value):
    measure = registered(lambda subject: Measured(value))
    with pytest.raises(CannotAsk, match="not a finite number"):
        measure(Subject(nn.Identity(), torch.zeros(1, 3, 4, 4)))


def test_a_claim_has_one_probe():
    with pytest.raises(ValueError, match="C13 has a probe already: nearest_head"):
        probe("C13", "?")(lambda subject: Measured(0))


@pytest.mark.parametrize("name", COMPARING)
def test_claims_about_two_models_ask_for_the_second(name):
    model, images, labels = digits()
    assert asked(name, model, images, labels) == "needs a second model: --beside NAME"
    reason = asked(name, model, images, labels, beside=model, white=(1.0,))
    assert "of these, both have it" in reason


@pytest.mark.parametrize("name", WITH_LABELS)
def test_claims_about_accuracy_ask_for_classes(name):
    model = minivit.load("cifar10_vit_gap")
    images, resnet = torch.randn(4, 3, 32, 32), minivit.load("cifar10_resnet")
    reason = asked(name, model, images, beside=resnet, white=(4.0,) * 3)
    assert reason.startswith("needs the class of each image")


def test_noise_needs_to_know_what_white_is():
    model = minivit.load("cifar10_vit_gap")
    images, resnet = torch.randn(4, 3, 32, 32), minivit.load("cifar10_resnet")
    assert "for black and for white" in asked(
        "H27", model, images, torch.zeros(4).long(), beside=resnet
    )


def test_a_model_that_guesses_keeps_no_accuracy():
    model, resnet = minivit.load("cifar10_vit_gap"), minivit.load("cifar10_resnet")
    images = torch.randn(20, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    labels = (model(images).argmax(1) + 1) % 10
    assert "no more often than by chance" in asked("H26", model, images, labels, beside=resnet)


def test_groups_of_images_have_the_mean_that_all_have():
    model, images, _ = digits(18)
    for name in ("C13", "L20", "H29", "C04"):
        subject = Subject(model, images)
        whole = PROBES[name].measure(subject)
        assert whole.each is not None and len(whole.each) in (4, 18)
        few = PROBES[name].measure(Subject(model, images[:15]))
        assert few.each is None or len(few.each) == 15
    assert whole.each.mean().item() == pytest.approx(whole.figure)


def test_rank_correlation_is_spearmans():
    stats = pytest.importorskip("scipy.stats")
    draws = torch.Generator().manual_seed(0)
    a, b = torch.randint(0, 6, (2, 5, 9), generator=draws).double()
    known = [stats.spearmanr(x, y).statistic for x, y in zip(a, b, strict=True)]
    torch.testing.assert_close(rank_correlation(a, b), torch.tensor(known, dtype=torch.float64))
    assert rank_correlation(a, torch.ones_like(a)).abs().max() == 0


def test_a_model_is_left_as_it_was():
    model, images, labels = digits(4)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    for name in ("C13", "R43", "V32", "V16", "H12", "L10"):
        asked(name, model, images, labels)
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def convnext():
    return torchvision.models.ConvNeXt([torchvision.models.convnext.CNBlockConfig(8, 16, 1), torchvision.models.convnext.CNBlockConfig(16, None, 1)])  # fmt: skip


EVERYBODY = {name: row[:3] for name, row in (WORK | REFUSED).items()} | {
    "torchvision vit": (lambda: torchvision.models.VisionTransformer(32, 8, 2, 2, 16, 32), (32, 32), None),
    "torchvision convnext": (convnext, (32, 32), None),
    "torchvision resnet18": (torchvision.models.resnet18, (32, 32), None),
    "hf vit": (lambda: hf.ViTForImageClassification(hf.ViTConfig(**HF)), (32, 32), None),
    "timm beit": (of_timm("beit_base_patch16_224", embed_dim=16, depth=2, num_heads=2, img_size=32), (32, 32), None),
    "timm mixer": (lambda: timm.models.MlpMixer(3, 32, patch_size=8, num_blocks=2, embed_dim=16), (32, 32), None),
    "timm dinov3": (of_timm("vit_small_patch16_dinov3", embed_dim=16, depth=2, num_heads=2, img_size=64), (64, 64), None),
}  # fmt: skip
FEW = ("timm registers", "hf clip", "vit-pytorch", "timm swin")


def audited(name, slow):
    """The figures of all probes of one architecture, or their reasons."""
    make, size, _ = EVERYBODY[name]
    model, _ = built(make, size)
    images = torch.randn(4, 3, *size, generator=torch.Generator().manual_seed(0))
    beside = built(torchvision.models.resnet18, size)[0]
    labels = torch.zeros(4, dtype=torch.int64)
    subject = Subject(model, images, labels, lambda: model, beside, (4.0,) * 3, 4)
    for claim, one in PROBES.items():
        if slow or not one.slow:
            try:
                yield claim, one.measure(subject)
            except CannotAsk as reason:
                yield claim, str(reason)


def check(name, slow):
    for claim, found in audited(name, slow):
        if isinstance(found, str):
            assert re.search(r"\w+ \w+", found) and "\n" not in found, (claim, found)
            continue
        assert math.isfinite(found.figure), claim
        assert found.each is None or (len(found.each) > 1 and found.each.isfinite().all()), claim
        assert all(math.isfinite(value) for value in found.baselines.values()), claim
        assert all(line.ndim == 1 for line in found.curves.values()), claim


@pytest.mark.parametrize("name", FEW)
def test_every_probe_of_an_architecture_gives_a_figure_or_a_reason(name):
    check(name, slow=False)


@pytest.mark.full
@pytest.mark.parametrize("name", EVERYBODY)
def test_every_probe_of_everybodys_architectures_gives_a_figure_or_a_reason(name):
    check(name, slow=True)
