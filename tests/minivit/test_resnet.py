"""minivit's ResNets compute what torchvision's do, while training too; and what else they can."""

import dataclasses
from functools import partial

import pytest
import torch
import torchvision
from torch import nn

import minivit
from minivit import ResNet, ResNetConfig
from minivit.catalogue import TORCHVISION
from minivit.resnet import Bottleneck, Stem
from tests import parity
from tests.parity import assert_same, check_faults, convert, draw, observe, put, random, same

BLOCKS = torchvision.models.resnet.BasicBlock, torchvision.models.resnet.Bottleneck
TORCHVISIONS = [name for name in TORCHVISION if "resnet" in name]
# Small, and with every number another.
SMALL = ResNetConfig((12, 20), 2, 7, "3x3", "basic", (1, 2, 1), 6)


def reference(block, stages, width=64, stem="7x7", dtype=torch.float64):
    """torchvision's ResNet of any width and number of stages, random in every number."""
    model = torchvision.models.ResNet(block, (1, 1, 1, 1), num_classes=7)
    side, stride = (7, 2) if stem == "7x7" else (3, 1)
    model.conv1 = nn.Conv2d(3, width, side, stride, padding=side // 2, bias=False)
    model.bn1 = nn.BatchNorm2d(width)
    model.maxpool = model.maxpool if stem == "7x7" else nn.Identity()
    model.inplanes = width
    for i in range(4):
        layer = nn.Sequential()  # torchvision's forward pass calls four
        if i < len(stages):
            layer = model._make_layer(block, width * 2**i, stages[i], 2 if i else 1)
        setattr(model, f"layer{i + 1}", layer)
    model.fc = nn.Linear(model.inplanes, 7)
    draw(model.to(dtype).eval())
    return model


def pictures(dtype=torch.float64, height=64, width=40, channels=3, seed=1):
    return random(2, channels, height, width, seed=seed).to(dtype)


@parity.DTYPES
@pytest.mark.parametrize(("name", "size"), [
    ("resnet18", (64, 40)),
    ("resnet50", (64, 40)),
    *(pytest.param(name, (224, 224), marks=pytest.mark.full) for name in TORCHVISIONS),
])  # fmt: skip
def test_resnets_equal_torchvisions_in_logits_maps_and_gradients(name, size, dtype):
    theirs = getattr(torchvision.models, name)()
    draw(theirs.to(dtype).eval())
    parity.compare(theirs, pictures(dtype, *size), convert)


@parity.DTYPES
@pytest.mark.parametrize(("block", "stages", "width", "stem"), [
    (BLOCKS[0], (1, 2, 1), 16, "3x3"),
    (BLOCKS[1], (2, 1), 12, "3x3"),
    pytest.param(BLOCKS[1], (1, 1, 1, 1), 128, "7x7", marks=pytest.mark.full),  # as ResNet152x2
    (BLOCKS[0], (1,), 5, "7x7"),
])  # fmt: skip
def test_other_widths_stages_and_stems_equal_torchvisions(block, stages, width, stem, dtype):
    theirs = reference(block, stages, width, stem, dtype)
    parity.compare(theirs, pictures(dtype, 35, 50), convert)


@parity.DTYPES
@pytest.mark.parametrize("block", BLOCKS)
def test_training_is_the_same_too_and_gathers_the_same_statistics(block, dtype):
    theirs = reference(block, (2, 1, 1), 16, "3x3", dtype).train()
    ours = convert(theirs)
    for seed in (1, 2):
        images = pictures(dtype, 16, 24, seed=seed)
        assert_same(observe(ours, images), observe(theirs, images))
    expected = minivit.from_torchvision(theirs).state_dict()
    torch.testing.assert_close(ours.state_dict(), expected)
    assert ours.blocks[0].norm1.num_batches_tracked == 7 + 2


@pytest.mark.parametrize("block", BLOCKS)
def test_other_numbers_under_any_key_fail_the_comparison(block):
    theirs = reference(block, (1, 2), 8, "3x3")
    images = pictures(height=9, width=12)
    expected, ours = observe(theirs, images, gradient=False), convert(theirs)
    assert same(observe(ours, images, gradient=False), expected)
    for key, tensor in ours.state_dict().items():
        if tensor.is_floating_point():
            tensor *= 1.001
            assert not same(observe(ours, images, gradient=False), expected), key
            tensor /= 1.001


def stride_in_the_first_convolution(model):
    for block in model.blocks:
        block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride


def no_norm_in_the_shortcut(model):
    for block in model.blocks:
        if isinstance(block.shortcut, nn.Sequential):
            block.shortcut[1] = nn.Identity()


def forward(kind, function):
    """A fault: modules of a kind run a function of themselves and their input."""
    parts = lambda model: [part for part in model.modules() if isinstance(part, kind)]  # noqa: E731
    return lambda m: [setattr(part, "forward", partial(function, part)) for part in parts(m)]


FAULTS = {
    "stride in the first convolution": stride_in_the_first_convolution,
    "no norm in the shortcut": no_norm_in_the_shortcut,
    "no activation after the sum": forward(Bottleneck, lambda m, x: m.shortcut(x) + m.branch(x)),
    "activation too early": forward(Bottleneck, lambda m, x: m.shortcut(x) + m.branch(x).relu()),
    "epsilon": lambda m: put(m, nn.BatchNorm2d, eps=1e-6),
    "average pooling": lambda m: put(m, Stem, pool=nn.AvgPool2d(3, stride=2, padding=1)),
    "last place, no mean": forward(ResNet, lambda m, x: m.head(m.features(x)[:, :, -1, -1])),
}


def test_a_planted_fault_fails_the_comparison():
    theirs, images = reference(BLOCKS[1], (1, 2), 8), pictures()
    check_faults(convert(theirs), images, observe(theirs, images), FAULTS)


def made(**changes):
    torch.manual_seed(0)
    return draw(ResNet(dataclasses.replace(SMALL, **changes)).eval())


def test_the_plain_network_is_its_layers_in_a_row():
    model = made(norm="layer", residual=False)
    layers = [model.stem.conv, model.stem.norm, nn.ReLU()]
    for block in model.blocks:
        assert block.shortcut is None
        layers += [block.conv1, block.norm1, nn.ReLU(), block.conv2, block.norm2, nn.ReLU()]
    by_hand = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), model.head)
    images = pictures(torch.float32, 12, 20, 2)
    torch.testing.assert_close(model(images), by_hand(images))


def test_layer_norm_takes_mean_and_deviation_over_channels_and_places_of_an_image():
    model, images = made(norm="layer"), pictures(torch.float32, 12, 20, 2)
    for module in model.stem.norm, model.blocks[0].norm1:
        x = 3 * model.stem.conv(images) + 2
        mean = x.mean((1, 2, 3), keepdim=True)
        deviation = (x.var((1, 2, 3), keepdim=True, correction=0) + 1e-5).sqrt()
        scale, shift = (p[:, None, None] for p in (module.weight, module.bias))
        torch.testing.assert_close(module(x), (x - mean) / deviation * scale + shift)
