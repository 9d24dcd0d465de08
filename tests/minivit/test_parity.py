"""minivit's models compute what torchvision's do, and the comparison would see it if not."""

import copy

import pytest
import torch
from einops import rearrange
from torch import nn

from minivit.variants import PostNormBlock
from tests.parity import assert_same, convert, observe, pictures, reference, unseen

MEAN = torch.tensor([0.485, 0.456, 0.406], dtype=torch.float64)[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64)[:, None, None]


def compare(name, dtype, depth=None, image_size=224):
    theirs = reference(name, dtype, depth, image_size)
    images = pictures(theirs, image_size)
    expected = observe(theirs, images)
    assert len(expected) == len(theirs.encoder.layers) + 2
    assert_same(observe(convert(theirs), images), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_vit_b_32_equals_torchvisions_in_logits_tokens_and_gradients(dtype):
    compare("vit_b_32", dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["vit_b_16", "vit_l_16", "vit_l_32", "vit_h_14"])
def test_two_blocks_of_full_width_equal_torchvisions(name, dtype):
    compare(name, dtype, depth=2)


@pytest.mark.full
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["vit_b_16", "vit_l_16", "vit_l_32"])
def test_whole_models_equal_torchvisions(name, dtype):
    compare(name, dtype)


# In float64 a copy of ViT-H takes 5 GB: there three blocks stand for all, at full width and size.
@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "image_size"), [("vit_h_14", 224), ("vit_l_16", 512), ("vit_h_14", 518)]
)
@pytest.mark.parametrize(("dtype", "depth"), [(torch.float32, None), (torch.float64, 3)], ids=str)
def test_the_largest_models_equal_torchvisions(name, image_size, dtype, depth):
    compare(name, dtype, depth, image_size)


@pytest.fixture(scope="module")
def converted():
    theirs = reference("vit_b_32", torch.float64, depth=2)
    return theirs, convert(theirs)


@pytest.fixture
def pair(converted):
    return copy.deepcopy(converted)


def check_that_every_key_counts(theirs, ours):
    images = pictures(theirs)
    for model, bias in (theirs, "self_attention.in_proj_bias"), (ours, "attention.qkv.bias"):
        expected = observe(model, images, gradient=False)
        keys = [key for key in model.state_dict() if key.endswith(bias)]
        # The same number for all keys of a query is nothing to a softmax.
        assert unseen(model, images, expected) == [(key, "k") for key in keys]


def test_one_number_changed_under_any_key_of_either_model_fails_the_comparison(pair):
    check_that_every_key_counts(*pair)


@pytest.mark.full
def test_one_number_changed_under_any_key_of_a_whole_model_fails_the_comparison():
    theirs = reference("vit_b_32", torch.float64)
    check_that_every_key_counts(theirs, convert(theirs))


def scale(model):
    for block in model.blocks:  # 1 / sqrt(dim) in place of 1 / sqrt(d_head)
        layer = block.attention
        q = layer.qkv.weight[: layer.out.in_features], layer.qkv.bias[: layer.out.in_features]
        for part in q:
            part /= layer.heads**0.5


def epsilon(model):
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-5


def norm_order(model):
    for block in model.blocks:
        block.__class__ = PostNormBlock


def position_offset(model):
    model.positions.table.copy_(model.positions.table.roll(1, 0))


def head_order(model):
    for block in model.blocks:
        for p in block.attention.qkv.parameters():
            p.copy_(rearrange(p, "(t h d) ... -> (t d h) ...", t=3, h=block.attention.heads))


def approximate_gelu(model):
    for block in model.blocks:
        block.mlp.activation = nn.GELU(approximate="tanh")


def missing_bias(model):
    for block in model.blocks:
        block.attention.out.bias = None


def transposed_weight(model):
    for block in model.blocks:
        block.attention.out.weight.copy_(block.attention.out.weight.T.clone())


def class_token_last(model):
    model.positions.register_forward_pre_hook(lambda m, args: (args[0].roll(-1, 1), args[1]))


def unnormalised_input(model):
    model.register_forward_pre_hook(lambda m, args: (args[0] * STD + MEAN,))


FAULTS = [scale, epsilon, norm_order, position_offset, head_order, approximate_gelu, missing_bias,
          transposed_weight, class_token_last, unnormalised_input]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_fails_the_comparison_in_every_figure_it_reaches(pair, fault):
    theirs, ours = pair
    images = pictures(theirs)
    expected = observe(theirs, images)
    assert_same(observe(ours, images), expected)
    fault(ours)
    with pytest.raises(AssertionError, match="logits.*gradient"):
        assert_same(observe(ours, images), expected)
