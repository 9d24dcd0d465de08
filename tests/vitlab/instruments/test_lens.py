"""What heads read from the tokens of every block, and the norms of these tokens."""

from functools import partial

import pytest
import torch

import minivit
from tests.parity import draw
from tests.refusals import assert_refused, unchecked
from tests.vitlab.instruments.models import DEPTH, MODELS, Known, everybodys, images
from tests.vitlab.tried.architectures import of_timm
from tests.vitlab.tried.by_hand import ends
from vitlab.instruments import logit_lens, token_norms

# What each library's model makes of the tokens after its blocks.
HEADS = {
    "minivit mean": lambda m, x: m.head(m.norm(x).mean(1)),
    "minivit class": lambda m, x: m.head(m.norm(x)[:, 0]),
    "minivit attention": lambda m, x: m.head(m.pool(m.norm(x))),
    "torchvision": lambda m, x: m.heads(m.encoder.ln(x)[:, 0]),
    "timm": lambda m, x: m.head(m.norm(x)[:, 0]),
    "huggingface": lambda m, x: m.classifier(m.vit.layernorm(x)[:, 0]),
}


@pytest.mark.parametrize("name", MODELS)
@unchecked()  # tokens are given to a model's head as if each were an image
def test_everybodys_heads_read_every_token(name):
    """Where one token is read, it is that; where a mean is, of tokens that are all like it."""
    model, pictures, grid = everybodys(name)
    found = logit_lens(model, pictures, every_token=True)
    blocks = [MODELS[name][1].format(i) for i in range(DEPTH)]
    tokens = MODELS[name][3] + grid[0] * grid[1]
    assert found.logits.shape == (DEPTH + 1, 2, tokens, 5)
    seen = ends(model, pictures, blocks)
    states = [seen[blocks[0]][0], *(after for _, after in seen.values())]
    for rows, x in zip(found.logits, states, strict=True):
        for token in 0, 4, tokens - 1:
            known = HEADS[name](model, x[:, token : token + 1])
            torch.testing.assert_close(rows[:, token], known.double(), rtol=1e-4, atol=1e-5)


def test_where_there_is_no_lens_or_what_has_no_tokens_it_says_so():
    skips = draw(minivit.create("vit_32px", depth=2))  # what it answers needs the images too
    skips.register_forward_hook(
        lambda _, read, answers: answers + read[0].mean((2, 3)).sum(1)[:, None]
    )
    swin = of_timm("swin_tiny_patch4_window7_224", img_size=56, embed_dim=12, depths=(1, 1))()
    lens, x = partial(partial, logit_lens), images(2, (32, 32))
    assert_refused([
        (lens(minivit.create("resnet_32px"), x), ValueError, "ResNet .* no row of blocks from tokens"),
        (lens(minivit.create("alternet_32px"), x), ValueError, "Hybrid .* no row of blocks from tokens"),
        (lens(skips, x), ValueError, "logits of ViT that follow from what 'blocks.1' gives"),
        (partial(token_norms, swin, torch.rand(1, 3, 56, 56)), ValueError, "no row of blocks"),
        (partial(token_norms, minivit.create("vit_32px"), x, grid=(3, 3)), ValueError, r"\[2, 64, \d+\] is neither tokens of a known grid"),
    ])  # fmt: skip


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
        found = token_norms(model, images(4))
    assert (found.first == "blocks.1") == is_one
    assert found.ratio[1, 0, 1, 3].item() == pytest.approx(factor, rel=1e-5)
