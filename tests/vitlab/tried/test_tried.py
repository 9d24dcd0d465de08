"""Everybody's architectures: each instrument's numbers are those by hand, or it refuses in words."""

import json
import subprocess
import sys

import pytest
import torch

import minivit
from book.tools.address import ROOT
from tests.refusals import unchecked
from tests.vitlab.tried.architectures import ARCHITECTURES, Patches, Tried
from tests.vitlab.tried.instruments import INSTRUMENTS
from tests.vitlab.tried.table import MARKS, PAGE, TABLE, built, page, tried
from vitlab import instruments as analysis

STORED = json.loads(TABLE.read_text(encoding="utf-8"))
FAST = "torchvision ViT", "torchvision Swin v2", "timm ViT, padded", "timm XCiT", "timm PiT", "HF CLIP", "HF YOLOS"  # fmt: skip


def ours(pool, extra):
    sizes = {"image_size": 32, "patch_size": 8, "dim": 16, "depth": 2, "heads": 2, "classes": 5}
    return Tried(
        lambda: minivit.create("vit_b_32", mlp_ratio=2, pool=pool, **sizes),
        "*.attention.weights",
        grids={16 + extra: Patches((4, 4), extra)},
        end=lambda model, x: model.head(model.pooled(model.norm(x))),
        positions=lambda model: model.positions.table[extra:].unflatten(0, (4, 4)),
        reads="first" if extra else "patches",
    )


@pytest.mark.parametrize("about", [ours("class", 1), ours("mean", 0)])
@pytest.mark.parametrize("instrument", INSTRUMENTS)
def test_our_own_models_have_the_numbers_by_hand(instrument, about):
    with torch.no_grad(), unchecked():  # the lens gives the head tokens as if each were an image
        INSTRUMENTS[instrument](*built(about), about)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in FAST else pytest.mark.full) for n in ARCHITECTURES]
)
def test_what_the_table_says_is_so(name):
    assert tried(name) == STORED[name], "run python -m tests.vitlab.tried.table"


def test_the_table_is_whole_and_its_page_made_of_it():
    assert list(STORED) == list(ARCHITECTURES) and len(STORED) > 40
    assert all(list(cells) == list(INSTRUMENTS) for cells in STORED.values())
    written = PAGE.read_text(encoding="utf-8").partition(MARKS)[2]
    assert written == page(STORED)
    ticks = [line.count("✓ (works)") for line in written.splitlines() if line.startswith('"')]
    assert ticks == [[*cells.values()].count("works") for cells in STORED.values()]
    assert written.count("{abbr}") == len(STORED) * len(INSTRUMENTS)


def test_what_is_computed_by_hand_knows_nothing_of_ours():
    code = "import sys, tests.vitlab.tried.by_hand; sys.exit(bool({'minivit', 'vitlab'} & {*sys.modules}))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.parametrize("instrument", [name for name in INSTRUMENTS if name != "record"])
def test_the_numbers_of_another_model_would_be_seen(instrument, monkeypatch):
    about = ARCHITECTURES["timm ViT with registers"]
    model, images = built(about)
    other, right = built(about)[0], getattr(analysis, instrument)
    for parameter in other.parameters():
        parameter.mul_(1.3)
    with torch.no_grad():
        INSTRUMENTS[instrument](model, images, about)
        of_other = lambda _, *args, **how: right(other, *args, **how)  # noqa: E731
        monkeypatch.setattr(analysis, instrument, of_other)
        with pytest.raises(AssertionError):
            INSTRUMENTS[instrument](model, images, about)
