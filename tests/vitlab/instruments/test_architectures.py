"""What attention distance and rollout make of everybody's architectures: the tokens, or a refusal."""

import re

import pytest
import timm
import torch
import transformers as hf
import vit_pytorch
from torch import nn
from vit_pytorch import cvt, t2t, xcit

from tests.parity import draw
from tests.vitlab.instruments.models import Known
from vitlab.instruments import attention_distance, localisation, receptive_field, rollout
from vitlab.instruments.layout import layouts

TIMM = {"embed_dim": 16, "depth": 2, "num_heads": 2, "img_size": 32}
HF = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
      "image_size": 32, "patch_size": 8}  # fmt: skip
LUCID = {"image_size": 32, "patch_size": 8, "num_classes": 3, "dim": 16, "depth": 2, "heads": 2}


def of_timm(name, **options):
    return lambda: timm.create_model(name, **options)


def vit(**options):
    return of_timm("vit_tiny_patch16_224", **(TIMM | {"patch_size": 8} | options))


def yolos(detection=10):
    sizes = HF | {"image_size": [32, 32], "num_detection_tokens": detection}
    return hf.YolosModel(hf.YolosConfig(**sizes, attn_implementation="eager"))


# What builds it, the image's size, the grid to give; then grid and the tokens that are no patches,
# or what the refusal says.
WORK = {
    "timm registers": (vit(reg_tokens=2), (32, 32), None, (4, 4), [0, 1, 2]),
    "timm padded": (vit(dynamic_img_size=True, dynamic_img_pad=True), (25, 43), None, (4, 6), [0]),
    "hf yolos": (yolos, (32, 32), None, (4, 4), [0, *range(17, 27)]),
    "hf yolos 100": (lambda: yolos(100), (32, 32), None, (4, 4), [0, *range(17, 117)]),
    "vit-pytorch": (lambda: vit_pytorch.ViT(**LUCID, mlp_dim=16), (32, 32), (4, 4), (4, 4), [0]),
}  # fmt: skip
REFUSED = {
    "timm xcit at 64 px": (of_timm("xcit_nano_12_p16_224", **TIMM | {"embed_dim": 16, "img_size": 64}), (64, 64), None, "tokens of 'blocks.0', which reads [1, 16, 16]: got [1, 2, 8, 8]"),
    "timm xcit with as many channels as tokens": (of_timm("xcit_nano_12_p16_224", **TIMM | {"embed_dim": 32, "img_size": 64}), (64, 64), None, "tokens of 'blocks.0', which reads [1, 16, 32]: got [1, 2, 16, 16]"),
    "vit-pytorch cvt": (lambda: cvt.CvT(num_classes=3, s1_emb_dim=8, s2_emb_dim=8, s3_emb_dim=8, s2_depth=1, s3_depth=1, s2_heads=1, s3_heads=1), (64, 64), None, "cannot be told apart"),
    "vit-pytorch without a grid": (lambda: vit_pytorch.ViT(**LUCID, mlp_dim=16), (32, 32), None, "give grid=(rows, columns)"),
    "vit-pytorch xcit": (lambda: xcit.XCiT(**LUCID | {"dim": 192, "heads": 6}, dim_head=32, cls_depth=1, mlp_dim=16), (32, 32), (4, 4), "between something else, such as channels"),
    "vit-pytorch t2t": (lambda: t2t.T2TViT(dim=16, image_size=64, depth=1, heads=2, mlp_dim=16, num_classes=3), (64, 64), (4, 4), "[1, 1, 256, 256] in 'to_patch_embedding.3.layers.0.0', where 256 of 256 tokens come from the image"),
}  # fmt: skip


def built(make, size):
    images = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(0))
    return draw(make()).eval(), images


@pytest.mark.parametrize("name", WORK)
def test_the_tokens_are_found_where_the_model_has_them(name):
    make, size, given, grid, extra = WORK[name]
    model, images = built(make, size)
    for layout in layouts(model, images, given):
        assert layout.grid == grid and layout.extra == len(extra)
        assert layout.where == tuple(i for i in range(layout.tokens) if i not in extra)
    found = rollout(model, images, grid=given)
    assert (found.grid, found.extra) == (grid, len(extra))
    torch.testing.assert_close(found.patches.sum(-1), torch.ones(found.patches.shape[:2]).double())


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_is_refused_in_words_that_are_true(name):
    make, size, grid, said = REFUSED[name]
    model, images = built(make, size)
    for call in attention_distance, rollout:
        with pytest.raises(ValueError, match=re.escape(said)):
            call(model, images, grid=grid)


def test_images_that_are_made_one_sequence_are_refused_and_one_at_a_time_is_not():
    model, images = built(lambda: hf.PixtralVisionModel(hf.PixtralVisionConfig(**HF)), (32, 32))
    for call in attention_distance, rollout:
        with pytest.raises(ValueError, match=r"16, 16\] for 2 images: got \[1, 2, 32, 32\]"):
            call(model, images)
    assert rollout(model, images, batch_size=1).matrices.shape == (2, 2, 16, 16)


class Shuffled(Known):
    """Sets its tokens in an order of its own; ``mix`` blurs the map before."""

    def __init__(self, order, mix=False):
        super().__init__(torch.eye(12)[None])
        self.order, self.mix = order, nn.AvgPool2d(3, 1, 1) if mix else nn.Identity()

    def forward(self, images):
        return self.blocks[0](self.mix(self.embed(images)).flatten(2).mT[:, self.order])


def test_tokens_in_another_order_are_put_in_their_places_or_refused():
    images = torch.randn(1, 3, 24, 32)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1)).tolist()
    (layout,) = layouts(Shuffled(order), images)
    assert [order[token] for token in layout.where] == list(range(12))
    (layout,) = layouts(Shuffled(range(12), mix=True), images)
    assert layout.where == tuple(range(12))
    with pytest.raises(ValueError, match="3 x 4 patches of 'blocks.0' in reading order"):
        layouts(Shuffled(order, mix=True), images)


def test_localisation_and_receptive_fields_know_tokens_that_stand_last():
    model, _ = built(lambda: yolos(20), (32, 32))
    images = torch.randn(60, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    found = localisation(model, images, "encoder.layer.0")
    assert found.places.shape == (4, 4, 4, 4) and len(found.extra) == 21
    assert found.own.mean() > 2 * found.elsewhere.mean() and found.hits.float().mean() > 0.7
    field = receptive_field(model, images[:2], "encoder.layer.0.layernorm_before", place=(1, 2))
    rows, columns = (axis.unique().tolist() for axis in field.support.nonzero().T)
    assert (rows, columns) == ([*range(8, 16)], [*range(16, 24)])
