import pytest
import torch
import torchvision

import minivit
from minivit.catalogue import MODELS, shipped
from minivit.families import build

NAMES = ["vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14"]


@pytest.mark.parametrize("name", NAMES)
def test_models_have_torchvisions_sizes_and_weights(name, listed):
    with torch.device("meta"):
        theirs = getattr(torchvision.models, name)()
        ours = minivit.create(name)
    (entry,) = [entry for entry in listed if entry.name == name]
    weights = torchvision.models.get_model_weights(name)
    assert entry.parameters == sum(p.numel() for p in theirs.parameters())
    assert entry.image_size == (theirs.image_size, theirs.image_size)
    assert entry.patch_size == (theirs.patch_size, theirs.patch_size)
    assert entry.weights == tuple(weight.name for weight in weights)
    assert len(ours.blocks) == len(theirs.encoder.layers)
    assert ours.config.heads == theirs.encoder.layers[0].num_heads
    converted = minivit.from_torchvision(theirs)
    shapes = {key: tensor.shape for key, tensor in ours.state_dict().items()}
    assert shapes == {key: tensor.shape for key, tensor in converted.state_dict().items()}


LARGE = ["vit_32px", "mixer_32px", "feedforward_32px", "resnet_32px", "hybrid_32px"]
SMALL = ["vit_8px", "mixer_8px", "feedforward_8px", "resnet_8px", "alternet_32px", "pit_32px"]


@pytest.mark.parametrize("name", SMALL + [pytest.param(n, marks=pytest.mark.full) for n in LARGE])
def test_small_models_learn_a_batch_by_heart(name):
    torch.manual_seed(0)
    model = minivit.create(name)
    side = model.config.image_size
    images, labels = torch.randn(6, model.config.channels, side, side), torch.arange(6)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (model(images).argmax(1) == labels).all()


def test_a_new_head_is_one_argument():
    with torch.device("meta"):
        assert minivit.create("vit_b_32", classes=10).head.weight.shape == (10, 768)


def test_changes_are_fields_of_the_configuration_and_leave_the_name_as_it_was():
    before = MODELS["vit_8px"]
    model = minivit.create("vit_8px", depth=1, image_size=(12, 16), pool="class")
    assert len(model.blocks) == 1 and model.positions.table.shape == (1 + 6 * 8, 64)
    assert MODELS["vit_8px"] is before and len(minivit.create("vit_8px").blocks) == 4


def test_models_is_a_readable_table_and_draws_no_random_number():
    state = torch.get_rng_state()
    lines = repr(minivit.models()).splitlines()
    assert torch.equal(torch.get_rng_state(), state)
    assert len(lines) == 1 + len(MODELS) + len(shipped())
    (line,) = [line for line in lines if line.startswith("vit_b_32")]
    assert line.split() == [
        "vit_b_32",
        "88,224,232",
        "224",
        "x",
        "224",
        "32",
        "x",
        "32",
        "IMAGENET1K_V1",
    ]


def test_models_take_no_memory_for_parameters(monkeypatch):
    made = []
    monkeypatch.setattr(
        "minivit.catalogue.build", lambda *about: made.append(build(*about)) or made[-1]
    )
    minivit.models()
    assert len(made) == len(MODELS) + len(shipped())
    assert all(p.is_meta for model in made for p in model.parameters())
