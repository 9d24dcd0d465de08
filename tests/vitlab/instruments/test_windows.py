"""Attention in windows, spread over the grid of tokens."""

import dataclasses

import pytest
import torch
import torchvision

from minivit import record
from tests.vitlab.tried import instruments
from tests.vitlab.tried.architectures import ARCHITECTURES, Patches
from tests.vitlab.tried.table import built
from vitlab.instruments import attention_distance, relevance, rollout
from vitlab.instruments.layout import layouts

# A grid of 10 x 10 is padded to whole windows of 4 x 4, and so is that of 5 x 5 after merging.
PADDED = dataclasses.replace(
    ARCHITECTURES["torchvision Swin"],
    size=(40, 40),
    grids={100: Patches((10, 10), 0, (4, 4)), 25: Patches((5, 5), 0, (8, 8))},
    windows=((10, 4, 0), (10, 4, 2), (5, 4, 0), (5, 4, 2)),
)
CALLS = [attention_distance, rollout, relevance]


@pytest.mark.parametrize("call", CALLS)
def test_windows_that_are_padded_and_shifted_are_put_where_their_tokens_are(call):
    getattr(instruments, call.__name__)(*built(PADDED), PADDED)


def test_an_image_has_the_same_maps_alone_and_among_others():
    model, images = built(PADDED)
    for call in (rollout, relevance):
        together, alone = (call(model, x).patches for x in (images, images[1:]))
        torch.testing.assert_close(together[:, 1:], alone, rtol=1e-5, atol=1e-9)


def test_no_patch_is_owed_anything_that_changes_nothing():
    model, images = built(PADDED)
    (at, *_) = layouts(model, images, windows=True)
    window = at.windows[0]
    changed = images.clone()
    changed.unflatten(2, (10, 4)).unflatten(4, (10, 4))[:, :, 9, :, 9] += 1  # the last patch
    with record(model, at.name) as before:
        model(images)
    with record(model, at.name) as after:
        model(changed)
    same = (before[at.name] == after[at.name]).all(-1).flatten(1)[0]  # [tokens]
    assert same.nonzero().flatten().tolist() == [i for i in range(100) if i not in at.windows[-1]]
    assert (rollout(model, images).matrices[0][:, same, 99] == 0).all() and 0 in window


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
