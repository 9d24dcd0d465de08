"""Frozen parts: chosen by name, equal to the last bit afterwards, told by the card."""

import copy

import pytest
import torch

import minivit
from tests.vitlab.training.small import bright_or_dark, tiny
from tests.vitlab.training.test_loop import at_step as at_step
from tests.vitlab.training.test_loop import broken_off
from vitlab.training.loop import train
from vitlab.training.optimiser import freeze, frozen
from vitlab.training.recipe import Recipe

RECIPE = Recipe(steps=12, batch_size=12, learning_rate=1e-2)


@pytest.mark.parametrize(("name", "parts", "expected"), [
    ("vit_8px", "1", ["patch_embedding", "positions", "blocks.0"]),
    ("vit_8px", "backbone", ["patch_embedding", "positions", "blocks", "norm"]),
    ("vit_8px", "patch_embedding, blocks.[01]", ["patch_embedding", "blocks.0", "blocks.1"]),
    ("vit_8px", "blocks.*.attention.out", [f"blocks.{i}.attention.out" for i in range(4)]),
    ("resnet_8px", "1", ["stem", "blocks.0"]),
    ("pit_32px", "2", ["stem", "blocks.0", "blocks.1", "positions"]),
    ("hybrid_32px", "4", ["stem", "transitions", "blocks.0", "blocks.1", "blocks.2", "blocks.3", "positions"]),
])  # fmt: skip
def test_parts_are_chosen_by_name_or_counted_from_the_first_that_runs(name, parts, expected):
    model = minivit.create(name)
    freeze(model, parts)
    assert sorted(frozen(model)) == sorted(expected)
    assert model.training


def test_what_cannot_be_frozen_is_refused_and_the_model_is_as_it_was():
    model = minivit.create("vit_8px")
    for parts in "layers", "positions,blocks.4", "5", "0", "", "dropout", "backbone,head":
        part = parts.split(",")[-1]
        with pytest.raises(ValueError, match=f"norm, head, .* got '{part}' of '{parts}'"):
            freeze(model, parts)
        assert not frozen(model)


@pytest.mark.parametrize(
    ("name", "parts"), [("vit_8px", "1"), ("vit_8px", "*.norm1"), ("resnet_8px", "2")]
)
def test_frozen_parts_stay_equal_to_the_last_bit_statistics_of_norms_included(name, parts):
    torch.manual_seed(0)
    model = minivit.create(name, classes=2)
    before = copy.deepcopy(model.state_dict())
    freeze(model, parts)
    still = tuple(f"{part}." for part in frozen(model))
    train(model, bright_or_dark(), RECIPE)
    for key, tensor in model.state_dict().items():
        if tensor.is_floating_point():  # all but the counts of batches
            assert torch.equal(tensor, before[key]) == key.startswith(still), key
    assert tuple(f"{part}." for part in frozen(model)) == still


def test_a_training_with_frozen_parts_goes_on_with_the_same_alone(tmp_path, at_step):
    data = bright_or_dark()

    def fresh(parts="1"):
        model = tiny()
        if parts:
            freeze(model, parts)
        return model

    train(fresh(), data, RECIPE, out=tmp_path / "whole")
    broken_off(at_step, 3, tmp_path / "run", fresh(), RECIPE)
    for other in ("", "2"):
        with pytest.raises(ValueError, match=r"the model's frozen is \['patch_embedding', 'posit"):
            train(fresh(other), data, RECIPE, out=tmp_path / "run", resume=True)
    train(fresh(), data, RECIPE, out=tmp_path / "run", resume=True)
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "run")]
    assert files[0].read_bytes() == files[1].read_bytes()
    card = (tmp_path / "run/card.md").read_text()
    assert "Frozen, as it was before: patch_embedding, positions, blocks.0." in card
