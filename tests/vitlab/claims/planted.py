"""Models in which a cause is planted, and what is measured on them."""

import copy
from functools import cache

import torch

import minivit
from vitlab.claims.measurements import MEASUREMENTS
from vitlab.claims.measuring import NotApplicable, Subject
from vitlab.data import load_data


@cache
def held_out():
    return load_data("DIGITS").test


def digits(count=20):
    """The trained ViT of digits, and held-out images with their labels."""
    model, test = minivit.load("digits_vit"), held_out()
    return model, model.preprocess(test.images[:count]), test.labels[:count]


def measured(name, model, images, labels=None, **more):
    return MEASUREMENTS[name].measure(Subject(model, images, labels, **more))


def figure(*given, **more):
    return measured(*given, **more).figure


def outcome(*given, **more):
    """The figure, or the sentence why there is none."""
    try:
        return figure(*given, **more)
    except NotApplicable as reason:
        return str(reason)


def changed(model, change):
    """A copy, changed in place."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        change(model)
    return model


def zero(*layers):
    for layer in layers:
        layer.weight.zero_()
        layer.bias.zero_()


def uniform(model):
    """Zero queries: every token attends to all alike."""
    for block in model.blocks:
        block.attention.qkv.weight[: model.config.dim] = 0
        block.attention.qkv.bias[: model.config.dim] = 0


def silent(model):
    """Attention and MLPs add nothing."""
    for block in model.blocks:
        zero(block.attention.out, block.mlp.down)


def masked(mask):
    """Attention in all blocks under a mask."""

    def change(model):
        for block in model.blocks:
            block.attention.register_forward_pre_hook(lambda module, args: (args[0], mask))

    return change
