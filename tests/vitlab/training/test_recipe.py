import dataclasses

import pytest
import torch

from tests.vitlab.training.small import bright_or_dark
from vitlab.training.defaults import DEFAULTS, model_for, recipe_for
from vitlab.training.recipe import Recipe

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epochs": 0}, "epochs must be above 0 and at most 1000000000: got 0"),
        ({"epochs": float("nan")}, "epochs must be above 0 and at most 1000000000: got nan"),
        ({"steps": 0}, "steps must be a whole number, at least 1, at most 1000000000: got 0"),
        ({"steps": 5, "minutes": 1}, "give steps or minutes, not both: got 5 and 1"),
        ({"batch_size": 2.5}, "batch_size must be a whole number, at least 1: got 2.5"),
        ({"batch_size": None}, "batch_size must be a whole number"),
        ({"learning_rate": float("inf")}, "learning_rate must be above 0: got inf"),
        ({"learning_rate": "fast"}, "learning_rate must be above 0: got 'fast'"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0: got -0.1"),
        ({"average": 1.0}, "average must be at least 0 and below 1: got 1.0"),
        ({"operations": 9}, "operations must be a whole number, at least 0, at most 8: got 9"),
        ({"magnitude": 2}, "magnitude must be from 0 to 1: got 2"),
        ({"flip": "yes"}, "flip must be true or false: got 'yes'"),
        ({"precision": "float16"}, "precision must be float32 or bfloat16: got 'float16'"),
        (
            {"seed": 2**63},
            "seed must be a whole number, at least 0, at most 9223372036854775807: got",
        ),
        ({"steps": 10**9 + 1}, "at most 1000000000: got 1000000001"),
        ({"epochs": 1e10}, "epochs must be above 0 and at most 1000000000: got 1"),
        ({"minutes": 1e7}, "minutes must be above 0 and at most 1000000: got"),
        ({"seed": -1}, "seed must be a whole number, at least 0, .*: got -1"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        Recipe(**changes)


def test_a_source_has_a_recipe_in_the_precision_that_is_fast_here(monkeypatch):
    for fast in (True, False):
        monkeypatch.setattr("torch.cpu._is_avx512_bf16_supported", lambda answer=fast: answer)
        precision = "bfloat16" if fast else "float32"
        assert recipe_for("CIFAR10", CPU).precision == precision
        assert recipe_for("CIFAR10", CPU, precision="float32").precision == "float32"
        assert recipe_for("DIGITS", CPU).precision == "float32"
    expected = dataclasses.replace(DEFAULTS["FOLDER"][1], seed=3)
    assert recipe_for("some/folder", CPU, seed=3) == expected


def test_a_source_has_a_model_for_its_images():
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
