"""A model as its embedding and its branches one after another, with the whole Jacobian."""

import math
from copy import deepcopy

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from minivit.mixer import Mixer, Mixing
from minivit.parts import ConvStem
from minivit.patches import pair
from minivit.shapes import Images, Tokens
from minivit.vit import MLP, MultiHeadAttention, ViT, attention_weights
from vitlab.inversion.residual import Branch, branches
from vitlab.inversion.stem import StemInverse
from vitlab.krylov.products import Operator, jacobian, linearise

CHUNK = 64  # directions at a time, where there is no short way
FREED = 2  # the level, after the first block, at which tokens may be moved


class Chain:
    """A model up to a block. Level 0 is the embedding, level ``k`` comes after ``k`` branches."""

    def __init__(self, model: ViT | Mixer, at: str, dtype: torch.dtype) -> None:
        model = deepcopy(model).to(dtype).requires_grad_(False)
        mask = model.mask(model.config.grid)
        last = int(at.removeprefix("blocks."))
        self.branches = [b for block in model.blocks[: last + 1] for b in branches(block, mask)]
        model.blocks = nn.ModuleList()
        self.embed, self.dtype = model.tokens, dtype
        stem, size = model.patch_embedding, pair(model.config.image_size)
        self.stem = StemInverse(stem, size) if isinstance(stem, ConvStem) else None
        self._embedded: tuple[Tensor, Tensor] | None = None  # of the last directions

    def states(
        self, images: Images, level: int | None = None, moved: Tokens | None = None
    ) -> list[Tokens]:
        """The tokens at every level up to this one, by default the last; with ``moved`` added."""
        states = [self.embed(images)]
        for k, branch in enumerate(self.branches[:level], 1):
            states.append(states[-1] + branch(states[-1]))
            if k == FREED and moved is not None:
                states[k] = states[k] + moved
        return states

    @torch.no_grad()
    def jacobian(
        self,
        image: Images,
        level: int,
        directions: Float[Tensor, "n ..."],
        moved: Tokens | None = None,
        along: Float[Tensor, "tokens dim k"] | None = None,
        doubt: float = 0.0,
    ) -> Float[Tensor, "tokens dim m"]:
        """How fast the tokens of one image at a level go along directions from it.

        After the first block ``moved`` is added, and ``along`` are directions there: m is n + k.
        ``doubt`` is for a convolutional stem, whose ReLUs are lines.
        """
        if self.stem is not None:
            pace = self.stem.push(image, directions, doubt)
        else:
            if self._embedded is None or self._embedded[0] is not directions:
                pace = _each(linearise(self.embed, image).push, directions)
                self._embedded = directions, pace.permute(1, 2, 0).contiguous()
            pace = self._embedded[1]
        states = zip(self.branches[:level], self.states(image, level, moved), strict=False)
        for k, (branch, x) in enumerate(states, 1):
            pace = push(branch, x, pace)
            if k == FREED and along is not None:
                pace = torch.cat([pace, along], 2)
        return pace


def ties(branch: Branch) -> bool:
    """Whether it mixes channels that only the norm of each token ties together."""
    return isinstance(branch.part, Mixing) and type(branch.norm) is nn.LayerNorm


def push(branch: Branch, x: Tokens, moved: Float[Tensor, "tokens dim n"]) -> Tensor:
    """How fast ``x + f(x)`` moves where the tokens of one image move so: by dense Jacobians."""
    if branch.alone:
        matrices = jacobian(branch.by_row, branch.rows(x))  # [rows, m, m]
        if branch.turned:
            return (matrices @ moved.transpose(0, 1)).transpose(0, 1)
        return matrices @ moved
    if ties(branch):
        h, scale = normed(branch, x[0])
        dim = h.shape[1]
        inner = (torch.eye(dim).to(h) - (1 + h[:, :, None] * h[:, None]) / dim) @ moved
        matrices = channel_matrices(branch, h) / scale.mT  # [dim, tokens, tokens]
        by_channel = moved.transpose(0, 1), matrices, inner.transpose(0, 1)
        return torch.baddbmm(*by_channel).transpose(0, 1)
    if type(branch.part) is MultiHeadAttention:
        return _push_attention(branch, branch.part, x[0], moved)
    at = linearise(branch, x)
    return moved + _each(at.push, moved.permute(2, 0, 1)).permute(1, 2, 0)


def _push_attention(
    branch: Branch,
    attention: MultiHeadAttention,
    x: Float[Tensor, "tokens dim"],
    moved: Float[Tensor, "tokens dim n"],
) -> Tensor:
    """How fast ``x + attention(norm(x))`` moves: the product rule, head by head."""

    def read(x: Tensor) -> Tensor:
        return attention.qkv(branch.norm(x))

    by_head = {"qkv": 3, "h": attention.heads}
    qkv = rearrange(read(x), "t (qkv h d) -> h qkv t d", **by_head)
    slopes = rearrange(jacobian(read, x), "t (qkv h d) dim -> h qkv t d dim", **by_head)
    outs = rearrange(attention.out.weight, "dim (h d) -> h dim d", h=attention.heads)
    total = moved
    for (q, k, v), slope, out in zip(qkv, slopes, outs, strict=True):
        dq, dk, dv = (part @ moved for part in slope)  # [tokens, d, n]
        p, root = attention_weights(q, k, branch.mask), math.sqrt(q.shape[1])
        dp = k / root @ dq + (q / root @ dk).transpose(0, 1)  # of the scores: [query, key, n]
        dp = dp.sub_(p[:, None] @ dp).mul_(p[..., None])
        dz = v.mT @ dp + (p @ dv.flatten(1)).view_as(dv)
        total = torch.baddbmm(total, out.expand(len(x), -1, -1), dz)
    return total


def normed(branch: Branch, x: Float[Tensor, "tokens dim"]) -> tuple[Tensor, Tensor]:
    """Tokens with mean 0 and variance 1, and the deviations ``[tokens, 1]`` they had."""
    assert isinstance(branch.norm, nn.LayerNorm)  # for mypy
    scale = (x.var(-1, unbiased=False, keepdim=True) + branch.norm.eps).sqrt()
    return (x - x.mean(-1, keepdim=True)) / scale, scale


def channel_matrices(branch: Branch, h: Float[Tensor, "tokens dim"]) -> Tensor:
    """The Jacobian of a mixing by each channel of normed tokens, [dim, tokens, tokens]."""
    norm, mlp = branch.norm, branch.part
    assert isinstance(norm, nn.LayerNorm) and isinstance(mlp, MLP)  # for mypy
    a = mlp.up((h * norm.weight + norm.bias).mT)  # [dim, hidden]
    normal = torch.distributions.Normal(torch.zeros_like(a), 1)
    slope = normal.cdf(a) + a * normal.log_prob(a).exp()  # of GELU
    return (mlp.down.weight * slope[:, None]) @ mlp.up.weight * norm.weight[:, None, None]


def _each(product: Operator, vectors: Float[Tensor, "n ..."]) -> Tensor:
    """A product with one Jacobian, of many vectors."""
    return torch.func.vmap(product, chunk_size=CHUNK)(vectors[:, None])[:, 0]
