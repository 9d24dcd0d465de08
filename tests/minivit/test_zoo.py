import os
import re

import pytest
import torch
import torchvision
from torchvision.models import ResNet, VisionTransformer
from torchvision.models.resnet import Bottleneck

import minivit
from minivit import ResNetConfig, ViTConfig
from minivit.catalogue import CHECKPOINTS, MODELS, TORCHVISION, shipped
from minivit.families import build
from minivit.files import fields_of
from vitlab.data import load_data
from vitlab.training import evaluate


@pytest.mark.parametrize("name", TORCHVISION)
def test_models_have_torchvisions_sizes_and_weights(name, listed):
    with torch.device("meta"):
        theirs, ours = getattr(torchvision.models, name)(), minivit.create(name)
    converted = minivit.from_torchvision(theirs)
    assert fields_of(converted.config) == fields_of(ours.config)
    shapes = {key: tensor.shape for key, tensor in ours.state_dict().items()}
    assert shapes == {key: tensor.shape for key, tensor in converted.state_dict().items()}
    (entry,) = [entry for entry in listed if entry.name == name]
    known = list(torchvision.models.get_model_weights(name))
    assert entry.weights == tuple(weights.name for weights in known)
    assert all(re.search(r"/[a-z0-9_]+-[0-9a-f]{8}\.pth$", weights.url) for weights in known)
    assert entry.parameters == sum(p.numel() for p in theirs.parameters())
    patches = (theirs.patch_size,) * 2 if hasattr(theirs, "patch_size") else None
    assert (entry.image_size, entry.patch_size) == ((224, 224), patches)


@pytest.mark.parametrize(("theirs", "ours"), [
    (lambda: ResNet(Bottleneck, [1, 1, 1, 1]), ResNetConfig(stages=(1, 1, 1, 1))),
    (lambda: VisionTransformer(32, 4, 2, 4, 64, 256), ViTConfig(32, 4, dim=64, depth=2, heads=4)),
])  # fmt: skip
def test_an_untrained_model_starts_as_torchvisions(theirs, ours):
    torch.manual_seed(0)
    theirs = minivit.from_torchvision(theirs()).state_dict()
    for key, tensor in build(ours).state_dict().items():
        if theirs[key].unique().numel() == 1:
            assert torch.equal(tensor, theirs[key]), key
        else:
            torch.testing.assert_close(tensor.std(), theirs[key].std(), rtol=0.1, atol=0)
            # A uniform distribution ends at 1.7 deviations.
            uniform = [t.abs().max() < 2 * t.std() for t in (tensor, theirs[key])]
            assert uniform[0] == uniform[1], key


def test_the_feedforward_model_has_the_size_of_its_paper(listed):
    (entry,) = [entry for entry in listed if entry.name == "feedforward_b_16"]
    assert entry.parameters == pytest.approx(62e6, rel=2e-3)


def test_models_is_a_readable_table_without_random_numbers_or_memory(monkeypatch):
    made, state = [], torch.get_rng_state()
    noted = lambda *about: made.append(build(*about)) or made[-1]  # noqa: E731
    monkeypatch.setattr("minivit.catalogue.build", noted)
    lines = repr(minivit.models()).splitlines()
    assert torch.equal(torch.get_rng_state(), state)
    assert {"digits_mixer", "digits_resnet", "digits_vit"} <= set(shipped())
    assert sum(path.stat().st_size for path in shipped().values()) < 24e6
    assert len(lines) == 1 + len(MODELS) + len(shipped()) == 1 + len(made)
    assert all(p.is_meta for model in made for p in model.parameters())
    (line,) = [line for line in lines if line.startswith("vit_b_32")]
    assert " ".join(line.split()) == "vit_b_32 88,224,232 224 x 224 32 x 32 IMAGENET1K_V1"


# The trained models that come with the package


def card(name):
    return (CHECKPOINTS / f"{name}.md").read_text(encoding="utf-8")


def source(name):
    return re.match(r"# \w+: \w+ trained on (\w+)", card(name))[1]


MARKS = {"DIGITS": []}
NAMES = [pytest.param(n, marks=MARKS.get(source(n), pytest.mark.full)) for n in shipped()]


@pytest.mark.parametrize("name", NAMES)
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
    assert name not in MODELS and b"sha256" in shipped()[name].read_bytes()[:200]
