"""What heads read from the tokens of every block, against the same steps by hand."""

from functools import partial

import pytest
import torch
from torch import nn

import minivit
from tests.parity import draw
from tests.refusals import assert_refused, unchecked
from tests.vitlab.instruments.models import DEPTH, MODELS, everybodys, images
from tests.vitlab.tried.by_hand import ends
from vitlab.instruments import logit_lens
from vitlab.instruments.blocks import row_of_blocks


@pytest.fixture(autouse=True)
def without_checks_of_shapes():
    """The lens gives a model's head tokens as if each were an image of a larger batch."""
    with unchecked():
        yield


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


@pytest.mark.parametrize("pool", ["mean", "class"])
def test_the_lens_is_the_class_tokens_or_the_mean_of_all(pool):
    model, pictures, _ = everybodys(f"minivit {pool}")
    one, every = (logit_lens(model, pictures, every_token=e).logits for e in (False, True))
    read = every[:, :, 0] if pool == "class" else every.mean(2)
    torch.testing.assert_close(one, read, rtol=1e-5, atol=1e-6)


class Skips(nn.Module):
    """Reads what stands before its last block too."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 8, 8)
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, images):
        x = self.blocks[0](self.embed(images).flatten(2).mT)
        return (x + self.blocks[1](x)).mean(1)


def test_the_longest_outermost_row_is_that_of_the_blocks():
    model, pictures, _ = everybodys("torchvision")  # whose MLPs are rows too
    assert len(row_of_blocks(nn.Sequential(nn.Identity(), model), pictures)) == DEPTH


class Stages(nn.Module):
    """Two rows of blocks, of which the first is longer, and a norm that a list holds too."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Conv2d(3, 8, 8, 8), nn.Flatten(2), nn.LayerNorm(16))
        self.blocks = nn.Sequential(*(nn.Linear(*sizes) for sizes in [(8, 8)] * 3 + [(8, 4)]))

    def forward(self, images):
        return self.blocks(self.embed(images).mT).mean(1)


def test_a_row_is_of_blocks_that_read_what_the_one_before_gave():
    model = draw(Stages())
    found = logit_lens(model, images(2, (32, 32)))
    assert found.names == ("embedding", "blocks.0", "blocks.1", "blocks.2")
    tokens = model.embed(images(2, (32, 32))).mT
    known = model.blocks[3](model.blocks[0](tokens)).mean(1)
    torch.testing.assert_close(found.logits[1], known.double(), rtol=1e-5, atol=1e-6)


def test_where_there_is_no_lens_it_says_so():
    cases = [
        (minivit.create("resnet_32px"), "ResNet has no row of blocks from tokens"),
        (minivit.create("alternet_32px"), "Hybrid has no row of blocks from tokens"),
        (draw(Skips()), "what Skips answers does not follow from what 'blocks.1' gives"),
    ]
    assert_refused(
        (partial(logit_lens, model, images(2, (32, 32))), ValueError, said) for model, said in cases
    )
