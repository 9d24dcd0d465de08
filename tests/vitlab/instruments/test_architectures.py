"""Tokens that are channels, moved, blurred, last or in windows: what the table of all has not."""

import dataclasses
import re
from functools import partial

import pytest
import torch
import torchvision
import transformers as hf
from torch import nn
from vit_pytorch import cvt, t2t, xcit

from tests.refusals import assert_refused
from tests.vitlab.instruments.models import Known
from tests.vitlab.tried import instruments
from tests.vitlab.tried.architectures import ARCHITECTURES, HF, LUCID, TIMM, Patches, Tried, of_timm
from tests.vitlab.tried.table import built
from vitlab.instruments import attention_distance, localisation, receptive_field, relevance, rollout
from vitlab.instruments.layout import layouts

# What builds it, the image's side, the grid to give, and what is said of it.
REFUSED = [
    (of_timm("xcit_nano_12_p16_224", **TIMM | {"embed_dim": 32, "img_size": 64, "patch_size": 16}), 64, None, "tokens of 'blocks.0', which reads [1, 16, 32]: got [1, 2, 16, 16]"),
    (lambda: cvt.CvT(num_classes=3, s1_emb_dim=8, s2_emb_dim=8, s3_emb_dim=8, s2_depth=1, s3_depth=1, s2_heads=1, s3_heads=1), 64, None, "cannot be told apart"),
    (lambda: xcit.XCiT(**LUCID | {"dim": 192, "heads": 6}, dim_head=32, cls_depth=1, mlp_dim=16), 32, (4, 4), "between something else, such as channels"),
    (lambda: t2t.T2TViT(dim=16, image_size=64, depth=1, heads=2, mlp_dim=16, num_classes=3), 64, (4, 4), "[1, 1, 256, 256] in 'to_patch_embedding.3.layers.0.0', where 256 of 256 tokens come from the image"),
]  # fmt: skip


def test_attention_that_is_not_known_to_be_between_an_images_tokens_is_refused():
    packed = built(Tried(lambda: hf.PixtralVisionModel(hf.PixtralVisionConfig(**HF))))
    cases = [(*packed, None, "16, 16] for 2 images: got [1, 2, 32, 32]")]
    cases += [(*built(Tried(make, size=(s, s))), grid, said) for make, s, grid, said in REFUSED]
    for call in attention_distance, rollout:
        assert_refused((partial(call, *x, grid=g), re.escape(said)) for *x, g, said in cases)
    assert rollout(*packed, read=range(16), batch_size=1).matrices.shape == (2, 2, 16, 16)


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
    config = hf.YolosConfig(**HF | {"image_size": [32, 32]}, num_detection_tokens=20)
    model, _ = built(Tried(lambda: hf.YolosModel(config)))
    images = torch.randn(60, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    found = localisation(model, images, "encoder.layer.0")
    assert found.places.shape == (4, 4, 4, 4) and len(found.extra) == 21
    assert found.own.mean() > 2 * found.elsewhere.mean() and found.hits.float().mean() > 0.7
    field = receptive_field(model, images[:2], "encoder.layer.0.layernorm_before", place=(1, 2))
    rows, columns = (axis.unique().tolist() for axis in field.support.nonzero().T)
    assert (rows, columns) == ([*range(8, 16)], [*range(16, 24)])


# A grid of 10 x 10 is padded to whole windows of 4 x 4, and so is that of 5 x 5 after merging.
PADDED = dataclasses.replace(
    ARCHITECTURES["torchvision Swin"],
    size=(40, 40),
    grids={100: Patches((10, 10), 0, (4, 4)), 25: Patches((5, 5), 0, (8, 8))},
    windows=((10, 4, 0), (10, 4, 2), (5, 4, 0), (5, 4, 2)),
)


@pytest.mark.parametrize("call", [attention_distance, rollout, relevance])
def test_windows_that_are_padded_and_shifted_are_put_where_their_tokens_are(call):
    getattr(instruments, call.__name__)(*built(PADDED), PADDED)


def test_windows_whose_queries_depend_on_several_tokens_are_refused():
    class Shifting(torchvision.models.swin_transformer.ShiftedWindowAttention):
        def forward(self, x):
            return super().forward(x + x.roll(1, 1))

    model, images = built(PADDED)
    model.features[1][1].attn.__class__ = Shifting
    with pytest.raises(
        ValueError, match=r"each in one window: got \[9, 1, 16, 16\] in 'features.1.1'"
    ):
        rollout(model, images)
