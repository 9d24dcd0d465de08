"""Read or rest: where small ViTs put attention that they do not need.

Of 4 x 4 patches one is marked. Patches that read have to give its colour, all others nothing; some
are blank. Softmax, a register, a 1 in softmax's denominator, or sigmoids; with an MLP or without.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Generator, Tensor

import minivit
from minivit.model import Model
from minivit.vit import MultiHeadAttention
from studies.runner.survey import Figures, Survey, over_seeds, plain
from studies.shared.lengths import named
from studies.shared.training import optimise

SEEDS = range(10)
STEPS, TIMES = 300, (1, 3)
COUNT = 1000  # new images to measure on
BLANK, READS, RESTS, MARKED = range(4)  # kinds of patches
SHARES = 0.3, 0.35, 0.35  # of the first three


def plus_one(scores: Tensor) -> Tensor:
    """Softmax with 1 added to the denominator (Miller 2023; Xiao et al. 2024)."""
    return F.pad(scores, (0, 1)).softmax(-1)[..., :-1]


def sigmoid(scores: Tensor) -> Tensor:
    """Each weight by itself (Ramapuram et al. 2024)."""
    return (scores - math.log(scores.shape[-1])).sigmoid()


softmax: Callable[[Tensor], Tensor] = partial(torch.softmax, dim=-1)
KINDS = {"plain": softmax, "register": softmax, "plus one": plus_one, "sigmoid": sigmoid}


class Weighing(MultiHeadAttention):
    """Attention that makes weights of scores in a way of its own, and keeps them."""

    def __init__(self, dim: int, heads: int, weigh: Callable[[Tensor], Tensor]) -> None:
        super().__init__(dim, heads)
        self.weigh = weigh

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = rearrange(self.qkv(x), "b n (qkv h d) -> qkv b h n d", qkv=3, h=self.heads)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        self.weights = self.weigh(scores if mask is None else scores.masked_fill(~mask, -1e9))
        return self.out(rearrange(self.weights @ v, "b h n d -> b n (h d)"))


def pictures(count: int, draws: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Images ``[count, 3, 8, 8]``, kinds ``[count, 16]`` and what to give ``[count, 16, 3]``."""
    kinds = torch.multinomial(torch.tensor(SHARES), 16 * count, True, generator=draws)
    kinds, rows = kinds.view(count, 16), torch.arange(count)
    at = torch.randint(16, (count,), generator=draws)
    kinds[rows, at] = MARKED
    colours = torch.rand(count, 16, 3, generator=draws)
    signs = [(kinds == kind)[..., None].expand(-1, -1, 3) for kind in (READS, MARKED)]
    pixels = torch.stack([colours, colours, *signs], 2) * (kinds != BLANK)[..., None, None]
    images = rearrange(pixels, "n (r c) (y x) k -> n k (r y) (c x)", r=4, y=2)
    return images, kinds, (colours[rows, at] - 0.5)[:, None] * (kinds == READS)[..., None]


def created(kind: str, mlp: bool) -> Model:
    """An untrained model of one block, 32 wide, with one head, whose attention is of this kind."""
    registers = int(kind == "register") or None
    sizes = {"dim": 32, "depth": 1, "heads": 1, "mlp_ratio": 2, "channels": 3, "classes": 3}
    model: Any = minivit.create("vit_8px", **sizes, pool="mean", registers=registers)
    (block,) = model.blocks
    attention = Weighing(32, 1, KINDS[kind])
    attention.load_state_dict(block.attention.state_dict())
    block.attention = attention
    return model if mlp else minivit.remove(model, "mlp")


def given(model: Any, images: Tensor, keys: Tensor | None = None) -> Tensor:
    """What a model gives for each patch, where only those in ``keys`` can be attended to."""
    if keys is not None:
        model.mask = lambda grid: keys[:, None, None]
    values = model.head(model.norm(model.tokens(images)))[:, -16:]
    vars(model).pop("mask", None)
    return values


def trained(kind: str, mlp: bool, steps: int, seed: int) -> Model:
    """A model after this many steps of 64 new images."""
    torch.manual_seed(seed)
    model, draws = created(kind, mlp), Generator().manual_seed(seed)

    def loss() -> Tensor:
        images, _, goal = pictures(64, draws)
        return F.mse_loss(given(model, images), goal)

    optimise(model, loss, steps, 3e-3, fused=True)
    return model


@torch.no_grad()
def measured(model: Any) -> Figures:
    """Errors, where patches that rest spend attention, and norms of tokens."""
    images, kinds, goal = pictures(COUNT, Generator().manual_seed(90_000))
    with minivit.record(model, "positions", "blocks.0") as seen:
        errors = (given(model, images) - goal).square().mean(-1)
    weights = model.blocks[0].attention.weights[:, 0, -16:]
    kind_of = F.pad(kinds, (weights.shape[-1] - 16, 0), value=4)  # 4: a register

    def share(query: int, key: int) -> Tensor:
        return (weights * (kind_of == key)[:, None]).sum(-1)[kinds == query].mean()

    norms = [x.norm(dim=-1) for x in seen.values()]
    names = "blank", "reads", "rests", "marked", "register"
    figures: Figures = {f"to {name}": share(RESTS, i) for i, name in enumerate(names)}
    figures |= {
        "blanks": (kinds == BLANK).double().mean(),
        "spent resting": weights.sum(-1)[kinds == RESTS].mean(),
        "error resting": errors[kinds == RESTS].mean().sqrt(),
    }
    for name, kind in ("blanks", BLANK), ("resting", RESTS):
        away = (given(model, images, kind_of != kind) - goal).square().mean(-1)
        figures[f"error resting, {name} hidden"] = away[kinds == RESTS].mean().sqrt()
    for name, kind in ("blank", BLANK), ("register", 4):
        ratios = [n[kind_of == kind].mean() / n[:, -16:].median() for n in norms]
        figures[f"norm of {name}"] = torch.stack(ratios).nan_to_num(0).max()
    return plain(figures)


def row(kind: str, mlp: bool, times: int) -> Figures:
    """Figures of ten models."""
    runs = over_seeds(measured(trained(kind, mlp, times * STEPS, seed)) for seed in SEEDS)
    return runs | {"steps": times * STEPS}


ROWS = {
    named(kind + ", with an MLP" * mlp, times): partial(row, kind, mlp, times)
    for mlp in (False, True)
    for times in TIMES
    for kind in KINDS
}
STUDY = Survey("sinks", ROWS, SEEDS)
