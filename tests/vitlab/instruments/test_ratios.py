"""Branches and skips of everybody's models, against the sums they are made of."""

from functools import partial

import pytest
import torch
from torch import nn

import minivit
from tests.parity import draw
from tests.refusals import assert_refused
from tests.vitlab.instruments.models import DIM, MODELS, everybodys, images
from vitlab.instruments import branch_ratios
from vitlab.instruments.residuals import branches

PARTS = {"minivit": ("attention", "mlp"), "torchvision": ("self_attention", "mlp"),
         "timm": ("attn", "mlp"), "huggingface": ("attention", "mlp")}  # fmt: skip


class Scaled(nn.Module):
    """Branches of known size: each token times a number."""

    def __init__(self, *scales):
        super().__init__()
        self.embed = nn.Conv2d(3, 24, 8, 8)
        self.parts = nn.ModuleList(nn.Linear(24, 24, bias=False) for _ in scales)
        for part, scale in zip(self.parts, scales, strict=True):
            part.weight.data = scale * torch.eye(24)

    def forward(self, images):
        x = self.embed(images).flatten(2).mT
        for part in self.parts:
            x = x + part(x)
        return nn.functional.relu(x)


def test_a_branch_that_is_a_multiple_of_the_skip_has_that_ratio():
    model = draw(Scaled(2, -0.5, 0.25))
    for part, scale in zip(model.parts, (2, -0.5, 0.25), strict=True):
        part.weight.data = scale * torch.eye(24)
    found = branch_ratios(model, images())
    assert found.names == ("parts.0", "parts.1")  # the last sum goes into no module
    known = torch.tensor([[2.0], [0.5]]).expand(2, 12).double()
    torch.testing.assert_close(found.ratio, known, rtol=1e-6, atol=0)
    torch.testing.assert_close(found.skip[1], 3 * found.skip[0], rtol=1e-6, atol=0)
    torch.testing.assert_close(found.branch, found.skip * known, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", MODELS)
def test_everybodys_branches_are_what_a_block_adds(name):
    model, pictures, _ = everybodys(name)
    block = MODELS[name][1]
    found = branch_ratios(model, pictures)
    attention, mlp = PARTS[name.split()[0]]
    assert found.names == tuple(
        f"{block.format(i)}.{p}" for i in range(2) for p in (attention, mlp)
    )
    inputs, given = [], {}
    hooks = [
        model.get_submodule(block.format(1)).register_forward_pre_hook(
            lambda m, args: inputs.append(args[0])
        ),
        *(
            model.get_submodule(part).register_forward_hook(
                lambda m, i, o, part=part: given.update({part: o[0] if isinstance(o, tuple) else o})
            )
            for part in found.names[2:]
        ),
    ]
    model(pictures)
    for hook in hooks:
        hook.remove()
    x = inputs[0].double()
    for row, part in zip((2, 3), found.names[2:], strict=True):
        branch = given[part].double()  # no dropout, no layer scale here
        ratio = torch.linalg.vector_norm(branch, dim=-1) / torch.linalg.vector_norm(x, dim=-1)
        torch.testing.assert_close(found.ratio[row], ratio.mean(0), rtol=1e-5, atol=0)
        x = x + branch


@pytest.mark.parametrize(
    ("name", "changes", "parts"),
    [
        ("mixer_8px", {}, ("mixing", "mlp")),
        ("feedforward_8px", {}, ("mlp", "mixing")),
        ("vit_8px", {"norm": "post"}, ("attention", "mlp")),
        ("vit_8px", {"removed": "norm"}, ("attention", "mlp")),
    ],
)
def test_every_order_of_parts_and_norms_is_understood(name, changes, parts):
    removed = changes.get("removed")
    model = minivit.create(name, depth=2, **{} if removed else changes)
    model = draw(minivit.remove(model, removed) if removed else model)
    found = branch_ratios(model, torch.rand(2, 1, 8, 8))
    assert found.names == tuple(f"blocks.{i}.{part}" for i in range(2) for part in parts)


def test_the_order_of_the_norm_decides_what_the_skip_is():
    """With the norm behind the sum, the MLP's skip is what the first norm gave."""
    model, x = draw(minivit.create("vit_8px", depth=1, norm="post")), torch.rand(1, 1, 8, 8)
    found = branch_ratios(model, x)
    with minivit.record(model, "blocks.0.norm1") as seen:
        model.eval()(x)
    skip = seen["blocks.0.norm1"].double().norm(dim=-1)[0]
    torch.testing.assert_close(found.skip[1], skip, rtol=1e-6, atol=0)


def test_batches_do_not_matter_and_the_model_comes_back_as_it_was():
    model, pictures = draw(minivit.create("vit_8px", dropout=0.2)), torch.rand(5, 1, 8, 8)
    model.train()
    found, other = branch_ratios(model, pictures), branch_ratios(model, pictures.split(2))
    torch.testing.assert_close(found.ratio, other.ratio, rtol=1e-5, atol=0)
    assert model.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_where_there_is_nothing_to_compare_it_says_so():
    cases = [
        (minivit.create("resnet_32px"), "between tokens is seen in ResNet"),
        (minivit.remove(minivit.create("vit_32px"), "residual"), "between tokens is seen in ViT"),
        (minivit.create("pit_32px"), "equally many tokens everywhere: got .*'blocks.2.attention': 64"),
    ]  # fmt: skip
    assert_refused(
        (
            partial(branch_ratios, model, images(1, (32, 32))),
            ValueError,
            said,
        )
        for model, said in cases
    )


def test_a_model_without_residuals_has_no_branches():
    with pytest.raises(ValueError, match="no residual connection is seen in Sequential"):
        branches(nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()), images(1))


class Adds(nn.Module):
    """The last part of a branch, which is given the skip and adds it: so write BERT's heirs."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(DIM, DIM)

    def forward(self, x, skip):
        return self.dense(x) + skip


class Given(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.output = nn.Conv2d(3, DIM, 8, 8), nn.LayerNorm(DIM), Adds()

    def forward(self, images):
        x = self.embed(images).flatten(2).mT
        return self.output(self.norm(x), x)


def test_a_skip_that_a_module_is_given_beside_its_branch_is_seen():
    model = Given()
    found = branch_ratios(model, images())
    assert found.names == ("output.dense",)
    skip = model.embed(images()).flatten(2).mT
    branch = model.output.dense(model.norm(skip))
    known = (branch.double().norm(dim=-1) / skip.double().norm(dim=-1)).mean(0)
    torch.testing.assert_close(found.ratio[0], known)


class Shortcut(nn.Module):
    """Calls an identity on the way of the skip, after its branch: so does timm's ConvNeXt."""

    def __init__(self):
        super().__init__()
        self.embed, self.mlp = nn.Conv2d(3, DIM, 8, 8), nn.Linear(DIM, DIM)
        self.drop, self.shortcut = nn.Identity(), nn.Identity()

    def forward(self, images):
        x = self.embed(images).flatten(2).mT
        return self.drop(self.mlp(x)) + self.shortcut(x)


def test_an_identity_on_the_way_of_the_skip_is_not_taken_for_the_branch():
    assert branch_ratios(Shortcut(), images()).names == ("mlp",)
