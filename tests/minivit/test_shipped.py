"""The trained models that come with the package."""

import os
import re

import pytest
import torch

import minivit
from minivit.catalogue import CHECKPOINTS, MODELS, shipped
from vitlab.data import load_data
from vitlab.training import evaluate

DIGITS = ("digits_mixer", "digits_resnet", "digits_vit")


def card(name):
    return (CHECKPOINTS / f"{name}.md").read_text(encoding="utf-8")


def source(name):
    return re.match(r"# \w+: \w+ trained on (\w+)", card(name))[1]


def test_the_digits_models_are_there_and_all_together_are_small():
    assert set(DIGITS) <= set(shipped())
    assert sum(path.stat().st_size for path in shipped().values()) < 24e6


def full_where_it_is(name):
    return pytest.param(name, marks=[] if source(name) == "DIGITS" else [pytest.mark.full])


@pytest.mark.parametrize("name", [full_where_it_is(name) for name in shipped()])
def test_a_shipped_model_is_as_accurate_as_its_card_says(name):
    if source(name) == "CIFAR10" and not os.environ.get("MINIVIT_CIFAR10"):
        pytest.skip("MINIVIT_CIFAR10 names no copy of CIFAR-10")
    model, test = minivit.load(name), load_data(source(name)).test
    (said,) = re.findall(rf"\| test \| half \| {len(test):,} \| ([\d.]+) \|", card(name))
    assert evaluate(model, test).accuracy == pytest.approx(float(said), abs=0.005)


@pytest.mark.parametrize("name", list(shipped()))
def test_a_shipped_model_is_listed_and_loads_in_float32_with_all_that_goes_with_it(name, listed):
    (entry,) = [entry for entry in listed if entry.name == name]
    model = minivit.load(name)
    assert entry.weights == ("shipped",)
    assert entry.parameters == sum(p.numel() for p in model.parameters())
    assert all(p.dtype == torch.float32 for p in model.parameters()) and not model.training
    assert model.preprocess and len(model.classes) == model.config.classes
    assert model.licence == "MIT" and "Licence of the weights: MIT." in card(name)
    assert "whose images are not included" in card(name)
    assert name not in MODELS


def test_create_gives_a_shipped_models_untrained_twin():
    trained, twin = minivit.load("digits_vit"), minivit.create("digits_vit", dropout=0.1)
    assert twin.config.dropout == 0.1 and twin.config.dim == trained.config.dim
    assert not torch.equal(
        twin.patch_embedding.projection.weight, trained.patch_embedding.projection.weight
    )


def test_weights_that_are_given_take_the_place_of_those_that_come_with_it(tmp_path):
    twin = minivit.create("digits_vit")
    minivit.save(twin, tmp_path / "a.safetensors")
    loaded = minivit.load("digits_vit", tmp_path / "a.safetensors")
    assert torch.equal(loaded.head.weight, twin.head.weight)
