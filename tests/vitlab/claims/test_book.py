"""The probes give the figures of the book's cards, to the digits printed."""

import json
from functools import cache

import pytest
import torch

import minivit
from course.claims.ledger import harvest
from course.claims.rows import BOOK, load
from course.claims.verdict import decided
from vitlab.claims.probe import Subject
from vitlab.claims.probes import PROBES
from vitlab.data import load_data
from vitlab.data.photographs import crops, photograph


def figure(name, model, images, labels=None, **more):
    return PROBES[name].measure(Subject(model, images, labels, **more)).figure


def printed(name, value):
    """As the claim's card prints it."""
    return decided(load().claims[name], value).figure


@cache
def card(name):
    """What the claim's card has: the figure as printed, and with every digit."""
    claim = load().claims[name]
    return harvest([BOOK / f"{claim.chapter}.ipynb"])[name]


def digits():
    model, test = minivit.load("digits_vit"), load_data("DIGITS").test
    return model, model.preprocess(test.images)


def twin():
    torch.manual_seed(0)
    return minivit.create("vit_8px").eval()


@pytest.mark.parametrize("name", ["V28", "V30", "V32"])
def test_figures_of_weights_and_photographs(name):
    model = minivit.load("cifar10_vit_gap")
    images = model.preprocess(crops(1)[0])
    assert printed(name, figure(name, model, images)) == card(name).figure


@pytest.mark.parametrize("name", ["R43", "R63", "H10", "C05", "H12", "R12", "L10"])
def test_figures_that_are_algebra(name):
    model, images = digits()
    found = [figure(name, one, images[:1]) for one in (model, twin())]
    for value in found:
        assert printed(name, value) == card(name).figure


@pytest.mark.full
def test_the_share_of_mlps_that_turn_round_is_the_cards():
    model, images = digits()
    both = [figure("R50", one, images[:4]) for one in (model, twin())]
    assert printed("R50", sum(both) / 2) == card("R50").figure


@pytest.mark.full
def test_the_blocks_that_are_undone_are_those_of_the_card():
    small, images = digits()
    large = minivit.load("cifar10_vit_gap")
    photo = large.preprocess(photograph("astronaut", 32)[None])
    pairs = 24 * figure("R24", small, images[:6]) + 6 * figure("R24", large, photo)
    assert printed("R24", pairs / 30) == card("R24").figure
    assert pairs / 30 == pytest.approx(card("R24").seeds[0])


def cifar10(count):
    from studies.runner.survey import NotHere
    from studies.shared import inputs  # reads the data once

    try:
        return inputs.pictures("CIFAR10", count)
    except NotHere as reason:
        pytest.skip(str(reason))


def mixed(split):
    """In the order of the studies."""
    return split[torch.randperm(len(split), generator=torch.Generator().manual_seed(0))]


VIT, GAP, CLS = "cifar10_vit", "cifar10_vit_gap", "cifar10_vit_cls"
RESNET, MIXER = "cifar10_resnet", "cifar10_mixer"
# Of each claim the model and the one beside it, how many test images, which of them, of which seed.
MEASURED = [
    ("C13", VIT, None, 300, slice(None), None),
    ("L20", VIT, None, 300, slice(None), None),
    ("V33", GAP, None, 300, slice(None, None, 5), None),
    *(("H23", name, None, 500, slice(250), i) for i, name in enumerate((VIT, GAP, CLS))),
    ("H26", VIT, RESNET, 500, slice(None), 0),  # the book's other pairs have other ResNets
    ("H27", VIT, RESNET, 500, slice(None), 0),
    ("C11", GAP, RESNET, 1000, slice(None), None),
    ("C20", GAP, MIXER, 1000, slice(None), None),
    ("C12", GAP, RESNET, 1000, slice(None), None),
    ("C22", GAP, None, 1000, slice(None), None),
]


@pytest.mark.full
@pytest.mark.parametrize(("name", "model", "beside", "count", "which", "seed"), MEASURED)
def test_figures_of_test_images(name, model, beside, count, which, seed):
    model = minivit.load(model)
    split = cifar10(count)
    split = split if count == 300 else mixed(split)
    found = figure(
        name,
        model,
        model.preprocess(split.images[which]),
        split.labels[which],
        beside=beside and minivit.load(beside),
        white=tuple(1 / std for std in model.preprocess.std),
        batch_size=50,
    )
    stored = card(name).seeds[seed or 0]
    assert printed(name, found) == printed(name, stored)
    assert found == pytest.approx(stored, abs=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("name", [VIT, GAP])
def test_variance_around_attention_is_that_of_the_study(name):
    model, split = minivit.load(name), cifar10(1000)
    around = torch.tensor(json.loads((BOOK / "results/smoothing.json").read_text())["rows"][name]["around"])  # fmt: skip
    stored = (around[3] / around[0]).log2()[0::2].mean().item()  # after, before; of attention
    found = figure("H29", model, model.preprocess(split.images[::4]), batch_size=50)
    assert found == pytest.approx(stored, abs=1e-4)  # which is stored with four digits


@pytest.mark.full
def test_the_convolutions_that_raise_the_high_frequencies_are_those_of_the_study():
    rows = json.loads((BOOK / "results/frequency.json").read_text())["rows"]
    strided = ("blocks.2.conv1", "blocks.4.conv1")
    layers = rows[f"amplitudes: {RESNET}"]["layers"].items()
    of = [one for name, one in layers if "conv" in name and name not in strided]
    stored = sum(one["after"]["high"] > one["before"]["high"] for one in of) / len(of)
    model = minivit.load(RESNET)
    images = model.preprocess(mixed(cifar10(500)).images[:250])
    assert figure("H04", model, images, batch_size=50) == pytest.approx(stored)


@pytest.mark.full
def test_tokens_that_know_their_patch_are_those_of_the_study():
    model, other = minivit.load(GAP), minivit.load(RESNET)
    rows = json.loads((BOOK / "results/representations.json").read_text())["rows"]
    stored = rows[GAP]["hits"][0] - rows[RESNET]["hits"][0]  # of the first quarter of the images
    images = model.preprocess(mixed(cifar10(4000)).images[:1000])
    found = figure("C15", model, images, beside=other, batch_size=50)
    assert found == pytest.approx(stored, abs=1e-4)
