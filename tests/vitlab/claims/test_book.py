"""The measurements give the figures of the book's cells, as their cards print them."""

import json
from functools import cache

import pytest
import torch
import torchvision

import minivit
from course.claims.ledger import harvest
from course.claims.rows import BOOK, load
from course.claims.verdict import decided
from tests.vitlab.claims.planted import digits, figure
from vitlab.data.photographs import crops, photograph


def printed(name, value):
    """As the claim's card prints it."""
    return decided(load().claims[name], value).figure


@cache
def card(name):
    """What the claim's card has: the figure as printed, and with every digit."""
    claim = load().claims[name]
    return harvest([BOOK / f"{claim.chapter}.ipynb"])[name]


def of_digits(count):
    """The figures of the trained ViT of digits, and of one before training."""

    def figures(name):
        model, images, _ = digits(count)
        torch.manual_seed(0)
        untrained = minivit.create("vit_8px").eval()
        return [figure(name, vit, images) for vit in (model, untrained)]

    return figures


def of_weights(name):
    model = minivit.load("cifar10_vit_gap")
    return [figure(name, model, model.preprocess(crops(1)[0]))]


def of_windows(name):
    model, resnet = minivit.create("vit_b_32", depth=2).eval(), torchvision.models.resnet50().eval()
    return [figure(name, model, torch.rand(1, 3, 224, 224), beside=resnet)]


def pairs_of_blocks(name):
    model, images, _ = digits(6)
    large = minivit.load("cifar10_vit_gap")
    photo = large.preprocess(photograph("astronaut", 32)[None])
    return [(24 * figure(name, model, images) + 6 * figure(name, large, photo)) / 30]


CELLS = [
    *((name, of_weights) for name in ("V28", "V30", "V32")),
    *((name, of_digits(1)) for name in ("R43", "H10", "C05", "H12", "R12", "L10")),
    ("V14", of_windows),
    ("R50", of_all_digits := lambda name: [sum(of_digits(4)(name)) / 2]),
    pytest.param("R63", of_all_digits, marks=pytest.mark.full),
    ("R24", pairs_of_blocks),
]


@pytest.mark.parametrize(("name", "figures"), CELLS)
def test_the_figure_of_a_cell(name, figures):
    for value in figures(name):
        assert printed(name, value) == card(name).figure


def cifar10(count):
    from studies.shared import inputs  # reads the data once

    try:
        return inputs.pictures("CIFAR10", count)
    except FileNotFoundError as reason:
        pytest.skip(str(reason))


def mixed(split):
    """In the order of the studies."""
    return split[torch.randperm(len(split), generator=torch.Generator().manual_seed(0))]


VIT, GAP = "cifar10_vit", "cifar10_vit_gap"
RESNET, MIXER = "cifar10_resnet", "cifar10_mixer"
# Of each claim the model and the one beside it, how many test images, and which of them.
MEASURED = [
    *((name, VIT, None, 300, slice(None)) for name in ("C13", "L20")),
    ("V33", GAP, None, 300, slice(None, None, 5)),
    ("H23", GAP, None, 500, slice(250)),
    *((name, GAP, RESNET, 1000, slice(None)) for name in ("C11", "C12")),
    ("C20", GAP, MIXER, 1000, slice(None)),
]


@pytest.mark.full
@pytest.mark.parametrize(("name", "model", "beside", "count", "which"), MEASURED)
def test_figures_of_test_images(name, model, beside, count, which):
    model = minivit.load(model)
    split = cifar10(count)
    split = split if count == 300 else mixed(split)
    images, labels = model.preprocess(split.images[which]), split.labels[which]
    how = {"beside": beside and minivit.load(beside), "batch_size": 50}
    how["white"] = tuple(1 / std for std in model.preprocess.std)
    value = figure(name, model, images, labels, **how)
    stored = card(name).seeds[0]
    assert printed(name, value) == printed(name, stored)
    assert value == pytest.approx(stored, abs=1e-3)


def rows(study):
    return json.loads((BOOK / f"results/{study}.json").read_text())["rows"]


@pytest.mark.full
def test_figures_of_studies():
    """Of variance around attention, convolutions that raise, and tokens that know their patch."""
    split = cifar10(1000)
    for name in VIT, GAP:
        model = minivit.load(name)
        around = torch.tensor(rows("smoothing")[name]["around"])
        stored = (around[3] / around[0]).log2()[0::2].mean().item()  # after, before; of attention
        value = figure("H29", model, model.preprocess(split.images[::4]), batch_size=50)
        assert value == pytest.approx(stored, abs=1e-4)  # which is stored with four digits
    strided = ("blocks.2.conv1", "blocks.4.conv1")
    layers = rows("frequency")[f"amplitudes: {RESNET}"]["layers"].items()
    ends = [row for name, row in layers if "conv" in name and name not in strided]
    stored = sum(row["after"]["high"] > row["before"]["high"] for row in ends) / len(ends)
    model, vit, split = minivit.load(RESNET), minivit.load(VIT), mixed(cifar10(500))
    images = model.preprocess(split.images)
    assert figure("H04", model, images[:250], batch_size=50) == pytest.approx(stored)
    of, by = (rows("frequency")[f"robustness: {name}"] for name in (VIT, RESNET))
    kept = [(r[k][i] - 0.1) / (r["whole"] - 0.1)
            for r in (of, by) for k in ("low", "high") for i in range(3)]  # fmt: skip
    lead = sum(kept[0:3]) - sum(kept[3:6]) - sum(kept[6:9]) + sum(kept[9:12])
    least = min(of["noise"][4] - of["noise"][0], by["noise"][0] - by["noise"][4])
    white, images = tuple(1 / std for std in vit.preprocess.std), vit.preprocess(split.images)
    for name, value in (("H26", lead / 3), ("H27", least)):
        found = figure(name, vit, images, split.labels, beside=model, white=white, batch_size=50)
        assert found == pytest.approx(value, abs=1e-3)
    model, other = minivit.load(GAP), minivit.load(RESNET)
    hits = rows("representations")
    stored = hits[GAP]["hits"][0] - hits[RESNET]["hits"][0]  # of the first quarter of the images
    images = model.preprocess(mixed(cifar10(4000)).images[:1000])
    value = figure("C15", model, images, beside=other, batch_size=50)
    assert value == pytest.approx(stored, abs=1e-4)
