"""minivit's models compute what torchvision's do, and the comparison would see it if not."""

import pytest
import torch
from einops import rearrange
from torch import nn

from minivit.variants import PostNormBlock
from minivit.vit import MLP, Block
from tests import parity
from tests.parity import DTYPES, convert, observe, pictures, put, reference

MEAN = torch.tensor([0.485, 0.456, 0.406], dtype=torch.float64)[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64)[:, None, None]


def compare(name, dtype, depth=None, image_size=224):
    theirs = reference(name, dtype, depth, image_size)
    parity.compare(theirs, pictures(theirs, image_size), convert)


@DTYPES
def test_vit_b_32_equals_torchvisions_in_logits_tokens_and_gradients(dtype):
    compare("vit_b_32", dtype)


@DTYPES
@pytest.mark.parametrize("depth", [2, pytest.param(None, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", ["vit_b_16", "vit_l_16", "vit_l_32", "vit_h_14"])
def test_models_of_full_width_equal_torchvisions(name, depth, dtype):
    if name == "vit_h_14" and depth is None and dtype == torch.float64:
        depth = 3  # a whole copy takes 5 GB
    compare(name, dtype, depth)


@pytest.mark.full
@pytest.mark.parametrize(("name", "image_size"), [("vit_l_16", 512), ("vit_h_14", 518)])
@pytest.mark.parametrize(("dtype", "depth"), [(torch.float32, None), (torch.float64, 3)], ids=str)
def test_large_images_give_what_they_give_in_torchvision(name, image_size, dtype, depth):
    compare(name, dtype, depth, image_size)


@pytest.fixture(scope="module")
def converted():
    theirs = reference("vit_b_32", torch.float64, depth=2)
    return theirs, convert(theirs)


def test_one_number_changed_under_any_key_of_either_model_fails_the_comparison(converted):
    theirs, ours = converted
    images = pictures(theirs)
    for model, bias in (theirs, "self_attention.in_proj_bias"), (ours, "attention.qkv.bias"):
        expected = observe(model, images, gradient=False)
        keys = [key for key in model.state_dict() if key.endswith(bias)]
        # The same number for all keys of a query is nothing to a softmax.
        assert parity.unseen(model, images, expected) == [(key, "k") for key in keys]


def scale(model):
    for block in model.blocks:  # 1 / sqrt(dim) in place of 1 / sqrt(d_head)
        for p in block.attention.qkv.parameters():
            p[: len(p) // 3] /= block.attention.heads**0.5


def head_order(model):
    for block in model.blocks:
        for p in block.attention.qkv.parameters():
            p.copy_(rearrange(p, "(t h d) ... -> (t d h) ...", t=3, h=block.attention.heads))


FAULTS = {
    "scale": scale,
    "head order": head_order,
    "transposed weight": lambda m: [b.attention.out.weight.copy_(b.attention.out.weight.T.clone()) for b in m.blocks],
    "epsilon": lambda m: put(m, nn.LayerNorm, eps=1e-5),
    "norm order": lambda m: put(m, Block, __class__=PostNormBlock),
    "approximate GELU": lambda m: put(m, MLP, activation=nn.GELU(approximate="tanh")),
    "missing bias": lambda m: [setattr(block.attention.out, "bias", None) for block in m.blocks],
    "position offset": lambda m: m.positions.table.copy_(m.positions.table.roll(1, 0)),
    "class token last": lambda m: m.positions.register_forward_pre_hook(lambda _, x: (x[0].roll(-1, 1), x[1])),
    "unnormalised input": lambda m: m.register_forward_pre_hook(lambda _, x: (x[0] * STD + MEAN,)),
}  # fmt: skip


def test_a_planted_fault_fails_the_comparison_in_every_figure_it_reaches(converted):
    theirs, ours = converted
    images = pictures(theirs)
    parity.check_faults(ours, images, observe(theirs, images), FAULTS)
