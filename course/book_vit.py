"""My vision transformer, from chapters 1 to 4."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn


# Chapter 1: patchify, filled from the book.
def patchify(images, patch):
    return rearrange(images, "b c (r h) (s w) -> b (r s) (c h w)", h=patch, w=patch)


# Chapter 2: multi_head, filled from the book.
def multi_head(x, w_qkv, w_out, heads):
    # each [batch, heads, tokens, d]
    q, k, v = rearrange(x @ w_qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=heads)
    # [batch, heads, tokens, tokens]
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    # the heads side by side again
    return rearrange(weights @ v, "b h n d -> b n (h d)") @ w_out


# Chapter 4: block, filled from the book.
def block(x, norm1, attention, norm2, mlp):
    x = x + attention(norm1(x))
    return x + mlp(norm2(x))


# Chapter 4: ViT, filled from the book.
class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def attention(self, x):
        # a Linear keeps its matrix transposed
        w_qkv, w_out = self.qkv.weight.T, self.out.weight.T
        return multi_head(x, w_qkv, w_out, self.heads)

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        return block(x, self.norm1, self.attention, self.norm2, self.mlp)


class ViT(nn.Module):
    def __init__(self, size, patch, channels, dim, depth, heads, classes):
        super().__init__()
        self.patch = patch
        tokens = 1 + (size // patch) ** 2
        self.embedding = nn.Linear(channels * patch**2, dim)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.zeros(tokens, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, classes)
        for parameter in self.head.parameters():
            nn.init.zeros_(parameter)

    def forward(self, images):
        x = self.embedding(patchify(images, self.patch))
        first = self.class_token.expand(len(x), -1, -1)
        x = torch.cat([first, x], 1) + self.positions
        for one in self.blocks:
            x = one(x)
        return self.head(self.norm(x)[:, 0])
