import dataclasses
import math
from functools import partial

import pytest
import torch

import minivit
from tests.refusals import assert_refused
from tests.vitlab.training.small import bright_or_dark
from vitlab.training.recipe import DEFAULTS, Recipe, continued, model_for, recipe_for

CPU = torch.device("cpu")


def test_a_recipe_that_makes_no_sense_is_refused():
    assert_refused(
        (partial(Recipe, **changes), ValueError, said)
        for changes, said in (
            ({"epochs": 0}, "epochs from 1e-300 to 1e.09: got 0"),
            ({"epochs": math.nan}, "got nan"),
            ({"steps": 5, "minutes": 1}, "5 steps and 1 minutes"),
            ({"average": 1.0}, "average .*: got 1.0"),
            ({"precision": "float16"}, "got 'float16'"),
            ({"seed": 2**63}, "seed .*: got 9223372036854775808"),
        )
    )


def test_a_source_has_a_recipe_in_the_precision_that_is_fast_here(monkeypatch):
    for fast in (True, False):
        monkeypatch.setattr("torch.cpu._is_avx512_bf16_supported", lambda answer=fast: answer)
        precision = "bfloat16" if fast else "float32"
        assert recipe_for("CIFAR10", CPU).precision == precision
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
    resnet = model_for("some/folder", data, "resnet_32px")
    assert resnet.config.image_size == (64, 64)
    with pytest.raises(ValueError, match="4 to 8 patches divide, such as 64: got 67"):
        model_for("some/folder", bright_or_dark(side=67))
    with pytest.raises(ValueError, match="no model 'vit_31px': did you mean vit_32px"):
        model_for("some/folder", data, "vit_31px")
    trained = minivit.remove(minivit.load("digits_vit"), "norm1")
    model = continued(trained, bright_or_dark(side=16))
    larger = minivit.load("digits_vit", image_size=16).state_dict()
    state = model.state_dict()
    assert model.removed == trained.removed and not any("norm1" in key for key in state)
    assert all(torch.equal(x, larger[key]) for key, x in state.items() if "head" not in key)
    assert state["head.weight"].shape == (2, 64) and model.config.image_size == (16, 16)
