"""Norms of tokens that are known, and outliers that were planted."""

from functools import partial

import pytest
import torch

import minivit
from tests.refusals import assert_refused
from tests.vitlab.instruments.models import MODELS, Known, everybodys, images
from tests.vitlab.instruments.test_architectures import of_timm
from vitlab.instruments import token_norms


@pytest.mark.parametrize("name", MODELS)
def test_an_outlier_that_was_planted_is_found_where_it_is_from_its_block_on(name):
    model, pictures, grid = everybodys(name)
    _, block, _, extra = MODELS[name]
    row, column = 1, 2
    token = extra + row * grid[1] + column

    def plant(x):
        y = x.clone()
        y[1:, token] *= 30
        return y

    assert token_norms(model, pictures).first is None
    with minivit.replace(model, {block.format(1): plant}):
        found = token_norms(model, pictures)
    assert found.first == block.format(1) and found.largest[1] > 10 > 2 > found.largest[0]
    assert found.outliers.nonzero().tolist() == [[1, 1, row, column]]
    assert found.places[1, row, column] == 0.5 and found.places.sum() == 0.5
    assert found.fraction.tolist() == [0, 1 / (2 * grid[0] * grid[1])]


@pytest.mark.parametrize(("factor", "is_one"), [(2.9, False), (3.1, True), (0.1, False)])
def test_the_rule_is_three_medians(factor, is_one):
    def plant(x):
        y = x / x.norm(dim=-1, keepdim=True)
        y[:, 7] *= factor
        return y

    model = Known(*torch.eye(12).expand(2, 1, -1, -1))
    with minivit.replace(model, {"blocks.1": plant}):
        found, lower = (token_norms(model, images(4), factor=f) for f in (3, 2))
    assert (found.first == "blocks.1") == is_one and (lower.first == "blocks.1") == (factor > 2)
    assert found.ratio[1, 0, 1, 3].item() == pytest.approx(factor, rel=1e-5)


def test_what_has_no_tokens_is_refused():
    pit = minivit.create("pit_32px", stages=("t", "t", "t"))
    x, model = images(1, (32, 32)), minivit.create("vit_32px")
    swin = of_timm("swin_tiny_patch4_window7_224", img_size=56, embed_dim=12, depths=(1, 1))()
    assert_refused([
        (partial(token_norms, swin, torch.rand(1, 3, 56, 56)), ValueError, "has no row of blocks"),
        (partial(token_norms, pit, x, "stages.*"), (ValueError, LookupError), "stages"),
        (partial(token_norms, model, x, grid=(3, 3)), ValueError, "64 tokens are no 3 x 3 patches"),
        (partial(token_norms, model, x, "blocks.11x"), LookupError, "no module matches"),
    ])  # fmt: skip
