"""Models in which a cause is planted, and what is measured on them."""

import copy

import torch
from torch import nn

import minivit
from vitlab.claims.measurements import MEASUREMENTS
from vitlab.claims.measuring import NotApplicable, Subject
from vitlab.data import load_data


def digits(count=20):
    """The trained ViT of digits, and held-out images with their labels."""
    model, test = minivit.load("digits_vit"), load_data("DIGITS").test
    return model, model.preprocess(test.images[:count]), test.labels[:count]


def figure(name, model, images, labels=None, **more):
    return MEASUREMENTS[name].measure(Subject(model, images, labels, **more)).figure


def outcome(name, model, images, labels=None, **more):
    """The figure, or the sentence why there is none."""
    try:
        return figure(name, model, images, labels, **more)
    except NotApplicable as reason:
        return str(reason)


def changed(model, change):
    """A copy, changed in place."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        change(model)
    return model


def uniform(model):
    """Zero queries: every token attends to all alike."""
    for block in model.blocks:
        block.attention.qkv.weight[: model.config.dim] = 0
        block.attention.qkv.bias[: model.config.dim] = 0


def silent(model):
    """Attention and MLPs add nothing."""
    for block in model.blocks:
        for last in (block.attention.out, block.mlp.down):
            last.weight.zero_()
            last.bias.zero_()


def no_head(model, block=0, head=0):
    """One head adds nothing."""
    width = model.config.dim // model.config.heads
    model.blocks[block].attention.out.weight[:, head * width : (head + 1) * width] = 0


def shuffled(model):
    table = model.positions.table
    table[:] = table[torch.randperm(len(table), generator=torch.Generator().manual_seed(2))]


def masked(mask):
    """Attention in all blocks under a mask."""

    def change(model):
        for block in model.blocks:
            block.attention.register_forward_pre_hook(lambda module, args: (args[0], mask))

    return change


class MixingTokens(nn.Module):
    """An MLP that adds what all tokens have in common."""

    def __init__(self, mlp):
        super().__init__()
        self.inner = mlp

    def forward(self, x):
        return self.inner(x) + x.mean(1, keepdim=True)


class RMSNorm(nn.Module):
    """Keeps the mean of a token, which LayerNorm takes away."""

    def forward(self, x):
        return x / x.square().mean(-1, keepdim=True).sqrt()


class MeanOfTokens(nn.Module):
    """A block that leaves one token, everywhere."""

    def forward(self, x, *rest):
        return x.mean(1, keepdim=True).expand_as(x).clone()


class Filtered(nn.Module):
    """A model that sees its images filtered."""

    def __init__(self, model, see):
        super().__init__()
        self.model, self.see = model, see

    def forward(self, images):
        return self.model(self.see(images))
