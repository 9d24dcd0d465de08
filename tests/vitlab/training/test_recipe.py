"""Recipes, and the optimiser, schedule and average that they ask for."""

import dataclasses
import math
from functools import partial

import pytest
import torch

import minivit
from tests.refusals import assert_refused
from tests.vitlab.training.small import bright_or_dark
from vitlab.data import load_data
from vitlab.training.optimiser import Average, adamw, schedule
from vitlab.training.recipe import DEFAULTS, Recipe, continued, model_for, recipe_for

CPU = torch.device("cpu")


def test_a_recipe_that_makes_no_sense_is_refused():
    cases = [
        ({"steps": 5, "minutes": 1}, "5 steps and 1 minutes"),
        ({"precision": "float16"}, "got 'float16'"),
        ({"seed": 2**63}, "as seed: got 9223372036854775808"),
    ]
    assert_refused((partial(Recipe, **changes), said) for changes, said in cases)


def test_a_source_has_a_recipe_in_the_precision_that_is_fast_here(monkeypatch):
    for fast in (True, False):
        monkeypatch.setattr("torch.cpu._is_avx512_bf16_supported", lambda answer=fast: answer)
        assert recipe_for("CIFAR10", CPU).precision == ("bfloat16" if fast else "float32")
        assert recipe_for("CIFAR10", CPU, precision="float32").precision == "float32"
        assert recipe_for("DIGITS", CPU).precision == "float32"
    expected = dataclasses.replace(DEFAULTS["FOLDER"][1], seed=3)
    assert recipe_for("some/folder", CPU, seed=3) == expected


def test_a_source_has_a_model_for_its_images_and_a_trained_one_goes_on_with_a_new_head():
    data = bright_or_dark(channels=3, side=64)
    config = model_for("some/folder", data).config
    assert (config.grid, config.channels, config.classes) == ((8, 8), 3, 2)
    assert model_for("some/folder", bright_or_dark(side=60)).config.grid == (6, 6)
    assert model_for("DIGITS", bright_or_dark()).config.dim == 64
    assert model_for("some/folder", data, "resnet_32px").config.image_size == (64, 64)
    with pytest.raises(ValueError, match="4 to 8 patches divide, such as 64: got 67"):
        model_for("some/folder", bright_or_dark(side=67))
    with pytest.raises(ValueError, match="no model 'vit_31px': did you mean vit_32px"):
        model_for("some/folder", data, "vit_31px")
    trained = minivit.remove(minivit.load("digits_vit"), "norm1")
    assert continued(trained, load_data("DIGITS")) is trained  # of the same classes
    model = continued(trained, bright_or_dark(side=16))
    larger = minivit.load("digits_vit", image_size=16).state_dict()
    state = model.state_dict()
    assert model.removed == trained.removed and not any("norm1" in key for key in state)
    assert all(torch.equal(x, larger[key]) for key, x in state.items() if "head" not in key)
    assert state["head.weight"].shape == (2, 64) and model.config.image_size == (16, 16)


SMALL = ["vit_8px", "feedforward_8px", "mixer_8px", "resnet_8px", "hybrid_32px", "pit_32px"]


@pytest.mark.parametrize("name", SMALL)
def test_only_the_weights_of_linear_maps_and_convolutions_decay(name):
    model = minivit.create(name)
    first = next(model.parameters()).requires_grad_(False)  # is left out
    decayed, spared = adamw(model, Recipe(weight_decay=0.3)).param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.3, 0)
    ids = {id(p) for p in decayed["params"]}
    names = {key: id(p) in ids for key, p in model.named_parameters() if p is not first}
    assert len(ids) + len(spared["params"]) == len(names)
    for key, decays in names.items():
        single = model.get_parameter(key).ndim == 1
        apart = any(part in key for part in ("norm", "positions", "class_token", "query"))
        assert decays == (key.endswith("weight") and not single and not apart), key


def test_the_rate_climbs_a_line_and_falls_along_a_cosine():
    rates = [schedule(step, 110, 10 / 110) for step in range(110)]
    assert rates[:11] == pytest.approx([(i + 1) / 11 for i in range(11)])
    assert rates[10 + 50] == pytest.approx(0.5)
    assert rates[10 + 25] == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert 0 < rates[-1] < 0.001
    assert schedule(0, 1, 0) == 1


def test_the_average_is_exponential_forgets_the_start_and_takes_in_a_batch_norms_statistics():
    model = minivit.create("vit_8px")
    model.head.bias.data.fill_(1.0)
    average = Average(model, 0.9)
    bias, expected = average.model.head.bias, 1.0
    for step, value in enumerate([2.0, 5.0, 3.0, *[4.0] * 200]):
        model.head.bias.data.fill_(value)
        average.update(model, step)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
        if step == 0:
            assert bias[0].item() == pytest.approx(0.1 * 1 + 0.9 * 2)
        assert bias[0].item() == pytest.approx(expected, rel=1e-5)
    assert not average.model.training and not bias.requires_grad
    model = minivit.create("resnet_8px")
    average = Average(model, 0.0)
    model(torch.randn(4, 1, 8, 8))
    average.update(model, 0)
    assert all(map(torch.equal, average.model.state_dict().values(), model.state_dict().values()))
