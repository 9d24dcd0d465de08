"""Files from when ablations were fields of the configuration are read as what they were."""

import json

import pytest
import safetensors.torch
import torch

import minivit
from minivit.files import current

PLAIN = {"stem": "patch", "positions": "learned", "window": None, "local": None, "norm": "pre"}
WHOLE = {"attention": True, "mlp": True, "residual": True}
VIT = {"image_size": 8, "patch_size": 4, "channels": 2, "classes": 5, "dim": 12, "depth": 2}
VIT |= {"heads": 3, "mlp_ratio": 2, "pool": "mean"} | PLAIN | WHOLE
MIXER = {"image_size": 8, "patch_size": 4, "channels": 2, "classes": 5, "dim": 12, "depth": 2}
MIXER |= {"mixing_hidden": 7, "norm": "pre", "residual": True}

CASES = [
    ("vit_8px", VIT, {}, []),
    ("vit_8px", VIT, {"mlp": False}, ["mlp", "norm2"]),
    ("vit_8px", VIT, {"attention": False}, ["attention", "norm1"]),
    ("vit_8px", VIT, {"attention": False, "residual": False}, ["attention", "residual"]),
    ("vit_8px", VIT, {"mlp": False, "norm": "post"}, ["mlp"]),
    ("vit_8px", VIT, {"norm": "none", "positions": "none"}, ["norm", "positions"]),
    ("vit_8px", VIT, {"norm": "post", "residual": False}, ["residual"]),
    ("mixer_8px", MIXER, {"norm": "none", "residual": False}, ["norm", "residual"]),
]


@pytest.mark.parametrize(("name", "fields", "changes", "removed"), CASES)
def test_a_file_with_ablations_as_fields_is_loaded_as_the_model_without_those_parts(
    tmp_path, name, fields, changes, removed
):
    given = fields | changes
    gone = WHOLE.keys() | {"norm"} if name == "mixer_8px" else WHOLE.keys()
    sizes = {k: value for k, value in given.items() if k not in gone and value != "none"}
    model = minivit.create(name, **sizes)
    for part in removed:
        model = minivit.remove(model, part)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    family = "ViT" if name == "vit_8px" else "Mixer"
    about = {"family": family, "config": given}
    path = tmp_path / "old.safetensors"
    safetensors.torch.save_file(model.state_dict(), path, {"minivit": json.dumps(about)})
    loaded, x = minivit.load(path), torch.randn(2, 2, 8, 8)
    assert set(loaded.removed) == {(part, None) for part in removed}
    assert torch.equal(loaded(x), model.eval()(x))


def test_what_a_new_file_says_and_other_families_stay_as_they_are():
    for said in (
        {"family": "ResNet", "config": {"residual": False}},
        {"family": "ViT", "config": {"dim": 12}, "removed": [["norm", None]]},
        {"family": "ViT", "config": None},
    ):
        assert current(said) == said
