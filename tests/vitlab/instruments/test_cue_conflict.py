"""Answers by shape and by texture, counted."""

import math

import torch

from tests.refusals import assert_refused
from vitlab.data.shapes import draw_shapes
from vitlab.instruments import cue_conflict


def test_answers_are_counted_where_the_cues_disagree():
    shapes = torch.tensor([0, 1, 2, 3, 4, 4])
    textures = torch.tensor([1, 1, 0, 0, 0, 0])  # the second image has no conflict
    found = cue_conflict(torch.tensor([0, 1, 2, 0, 3, 4]), shapes, textures)
    assert (found.shape, found.texture, found.neither) == (3, 1, 1)
    assert found.share == 0.75


def test_generated_images_conflict_as_asked():
    drawn = draw_shapes(50, 16, typical=0)
    by_shape = cue_conflict(drawn.labels, drawn.labels, drawn.textures)
    by_texture = cue_conflict(drawn.textures, drawn.labels, drawn.textures)
    assert (by_shape.share, by_shape.shape) == (1, 50)
    assert (by_texture.share, by_texture.texture) == (0, 50)
    neither = cue_conflict(torch.full((50,), -1), drawn.labels, drawn.textures)
    assert math.isnan(neither.share)


def test_images_without_conflict_are_refused():
    labels = torch.arange(3)
    assert_refused([
        (lambda: cue_conflict(labels, labels, labels), ValueError, "disagree"),
    ])  # fmt: skip
