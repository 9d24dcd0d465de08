"""minivit's ResNets compute what torchvision's do, while training too; and what else they can."""

import dataclasses

import pytest
import torch
import torchvision
from torch import nn

import minivit
from minivit import ResNet, ResNetConfig
from minivit.catalogue import TORCHVISION
from tests.parity import assert_same, blocks_of, convert, draw, observe, same

BLOCKS = torchvision.models.resnet.BasicBlock, torchvision.models.resnet.Bottleneck
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
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
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(2, channels, height, width, generator=g, dtype=torch.float64)
    return x.to(dtype)


def compare(theirs, images):
    expected = observe(theirs, images)
    assert len(expected) == len(blocks_of(theirs)) + 2
    assert_same(observe(convert(theirs), images), expected)


@DTYPES
@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_resnets_equal_torchvisions_in_logits_maps_and_gradients(name, dtype):
    theirs = getattr(torchvision.models, name)()
    draw(theirs.to(dtype).eval())
    compare(theirs, pictures(dtype))


@pytest.mark.full
@DTYPES
@pytest.mark.parametrize("name", TORCHVISIONS)
def test_all_resnets_equal_torchvisions_on_whole_images(name, dtype):
    theirs = getattr(torchvision.models, name)()
    draw(theirs.to(dtype).eval())
    compare(theirs, pictures(dtype, 224, 224)[:1])


@DTYPES
@pytest.mark.parametrize(
    ("block", "stages", "width", "stem"),
    [
        (BLOCKS[0], (1, 2, 1), 16, "3x3"),
        (BLOCKS[1], (2, 1), 12, "3x3"),
        (BLOCKS[1], (1, 1, 1, 1), 128, "7x7"),  # the widths of ResNet152x2
        (BLOCKS[0], (1,), 5, "7x7"),
    ],
)
def test_other_widths_stages_and_stems_equal_those_made_of_torchvisions_blocks(
    block, stages, width, stem, dtype
):
    compare(reference(block, stages, width, stem, dtype), pictures(dtype, 35, 50))


@DTYPES
@pytest.mark.parametrize("block", BLOCKS)
def test_training_is_the_same_too_and_gathers_the_same_statistics(block, dtype):
    theirs = reference(block, (2, 1, 1), 16, "3x3", dtype).train()
    ours = convert(theirs)
    for seed in (1, 2):
        images = pictures(dtype, 16, 24, seed=seed)
        assert_same(observe(ours, images), observe(theirs, images))
    expected = minivit.from_torchvision(theirs).state_dict()
    for key, tensor in ours.state_dict().items():
        torch.testing.assert_close(tensor, expected[key])
    assert ours.blocks[0].norm1.num_batches_tracked == 7 + 2


@pytest.mark.parametrize("name", TORCHVISIONS)
def test_the_zoos_resnets_have_torchvisions_shapes_and_start_alike(name):
    with torch.device("meta"):
        theirs, ours = getattr(torchvision.models, name)(), minivit.create(name)
    converted = minivit.from_torchvision(theirs)
    shapes = {key: tensor.shape for key, tensor in ours.state_dict().items()}
    assert shapes == {key: tensor.shape for key, tensor in converted.state_dict().items()}
    assert converted.config == ours.config


def test_an_untrained_resnet_starts_as_torchvisions():
    torch.manual_seed(0)
    theirs = minivit.from_torchvision(torchvision.models.resnet50()).state_dict()
    for key, tensor in minivit.create("resnet50").state_dict().items():
        if tensor.ndim < 2 and key != "head.bias":
            assert torch.equal(tensor, theirs[key]), key
        else:
            torch.testing.assert_close(tensor.std(), theirs[key].std(), rtol=0.1, atol=0)


@pytest.mark.parametrize("block", BLOCKS)
def test_other_numbers_under_any_key_fail_the_comparison(block):
    theirs = reference(block, (1, 2), 8, "3x3")
    images = pictures(height=9, width=12)
    expected, ours = observe(theirs, images, gradient=False), convert(theirs)
    for key, tensor in ours.state_dict().items():
        if tensor.is_floating_point():
            before = tensor.clone()
            tensor *= 1.001
            assert not same(observe(ours, images, gradient=False), expected), key
            tensor.copy_(before)
    assert same(observe(ours, images, gradient=False), expected)


def stride_in_the_first_convolution(model):
    for block in model.blocks:
        block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride


def no_activation_after_the_sum(model):
    for block in model.blocks:
        block.forward = lambda x, block=block: block.shortcut(x) + block.branch(x)


def activation_before_the_sum(model):
    for block in model.blocks:
        block.forward = lambda x, block=block: block.shortcut(x) + block.branch(x).relu()


def epsilon(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = 1e-6


def no_norm_in_the_shortcut(model):
    for block in model.blocks:
        if isinstance(block.shortcut, nn.Sequential):
            block.shortcut[1] = nn.Identity()


def average_pooling_in_the_stem(model):
    model.stem.pool = nn.AvgPool2d(3, stride=2, padding=1)


def last_place_in_place_of_the_mean(model):
    model.forward = lambda images: model.head(model.features(images)[:, :, -1, -1])


FAULTS = [stride_in_the_first_convolution, no_activation_after_the_sum, activation_before_the_sum,
          epsilon, no_norm_in_the_shortcut, average_pooling_in_the_stem, last_place_in_place_of_the_mean]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_fails_the_comparison(fault):
    theirs = reference(BLOCKS[1], (1, 2), 8)
    images = pictures()
    faulty = convert(theirs)
    assert_same(observe(faulty, images), observe(theirs, images))
    fault(faulty)
    with pytest.raises(AssertionError, match="logits"):
        assert_same(observe(faulty, images), observe(theirs, images))


def test_another_momentum_gathers_other_statistics():
    theirs = reference(BLOCKS[0], (1,), 8, "3x3").train()
    faulty = convert(theirs)
    faulty.blocks[0].norm1.momentum = 0.05
    for model in theirs, faulty:
        model(pictures(height=8, width=8))
    expected = minivit.from_torchvision(theirs).state_dict()
    assert [k for k, v in faulty.state_dict().items() if not torch.allclose(v, expected[k])] == [
        "blocks.0.norm1.running_mean",
        "blocks.0.norm1.running_var",
    ]


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


@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("block", ["basic", "bottleneck"])
def test_gradients_reach_every_parameter(norm, residual, block):
    model = made(norm=norm, residual=residual, block=block, width=8).train().requires_grad_()
    images = pictures(torch.float32, 12, 20, 2).requires_grad_()
    model(images).square().sum().backward()
    assert all(p.grad.any() for p in model.parameters())
    assert images.grad.any()


def test_with_layer_norm_images_of_a_batch_do_not_see_each_other_while_training():
    images = pictures(torch.float32, 12, 20, 2)
    for norm, alone in ("layer", True), ("none", True), ("batch", False):
        model = made(norm=norm).train()
        assert torch.allclose(model(images)[:1], model(images[:1]), atol=1e-5) == alone


def test_layer_norm_takes_mean_and_deviation_over_channels_and_places_of_an_image():
    model, images = made(norm="layer"), pictures(torch.float32, 12, 20, 2)
    for module in model.stem.norm, model.blocks[0].norm1:
        x = 3 * model.stem.conv(images) + 2
        mean = x.mean((1, 2, 3), keepdim=True)
        deviation = (x.var((1, 2, 3), keepdim=True, correction=0) + 1e-5).sqrt()
        scale, shift = (p[:, None, None] for p in (module.weight, module.bias))
        torch.testing.assert_close(module(x), (x - mean) / deviation * scale + shift)


@pytest.mark.parametrize("size", [(12, 20), (13, 21), (5, 1)])
@pytest.mark.parametrize(("stem", "block"), [("3x3", "basic"), ("7x7", "bottleneck")])
def test_each_stage_halves_any_image_and_doubles_the_width(size, stem, block):
    model = made(stem=stem, block=block, width=8)
    names = "stem", *(f"blocks.{i}" for i in range(4))
    with minivit.record(model, *names) as seen:
        assert model(pictures(torch.float32, *size, 2)).shape == (2, 7)
    for name, stage in zip(names, (0, 0, 1, 1, 2), strict=True):
        halvings = stage + (2 if stem == "7x7" else 0)
        height, width = (-(-side // 2**halvings) for side in size)  # rounded up
        channels = 8 * 2**stage * (4 if block == "bottleneck" and name != "stem" else 1)
        assert seen[name].shape == (2, channels, height, width)
    assert torch.equal(model.features(pictures(torch.float32, *size, 2)), seen["blocks.3"])


def layers(width, classes, n):
    """Parameters of a ResNet with 6n + 2 layers by formula, for images in colour."""
    conv = lambda a, b, side: a * b * side**2 + 2 * b  # noqa: E731  with scale and shift
    count = conv(3, width, 3)
    for stage in range(3):
        w = width * 2**stage
        count += 2 * n * conv(w, w, 3)
        if stage:  # the first convolution comes from half the width, and the shortcut with it
            count += conv(w // 2, w, 3) - conv(w, w, 3) + conv(w // 2, w, 1)
    return count + 4 * width * classes + classes


@pytest.mark.parametrize(("name", "n"), [("resnet_32px", 2), ("resnet_8px", 1)])
def test_parameter_counts_follow_the_formula(name, n):
    model = minivit.create(name, channels=3)
    assert sum(p.numel() for p in model.parameters()) == layers(16, 10, n)
    depth = sum("conv" in key and p.ndim == 4 for key, p in model.named_parameters()) + 1
    assert depth == 6 * n + 2
