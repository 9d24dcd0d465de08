"""Branches and heads: what they add to the stream, and what switching them off changes."""

from functools import partial
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
import transformers as hf
from torch import nn

import minivit
from tests.parity import draw
from tests.refusals import assert_refused
from tests.vitlab.instruments import models
from tests.vitlab.instruments.models import HEADS, MODELS, everybodys, images
from tests.vitlab.tried.architectures import ARCHITECTURES, HF
from tests.vitlab.tried.by_hand import ends, first, hooked, placed
from tests.vitlab.tried.table import built
from vitlab.convert.modern import ParallelBlock
from vitlab.instruments import branch_importance, branch_ratios, branch_variance, head_importance
from vitlab.instruments.importance import By, other_images
from vitlab.instruments.variance import variance_over_positions

N = 12  # patches


def test_a_constant_map_has_none_and_it_adds_up_with_the_mean_to_the_mean_square():
    x = torch.randn(3, N, 5, generator=torch.Generator().manual_seed(0))
    found = variance_over_positions(x)
    whole = x.double().square().mean((1, 2))
    torch.testing.assert_close(found + x.double().mean(1).square().mean(1), whole)
    assert torch.equal(variance_over_positions(x[:, :1].expand(-1, N, -1)), torch.zeros(3).double())


@pytest.mark.parametrize("name", MODELS)
def test_everybodys_streams_and_branches_are_those_of_their_patches(name):
    model, pictures, _ = everybodys(name)
    blocks, extra = [MODELS[name][1].format(i) for i in range(2)], MODELS[name][3]
    found = branch_variance(model, pictures)
    parts = ends(model, pictures, [*blocks, *found.names])
    variances = {}
    for part, both in parts.items():
        variances[part] = [variance_over_positions(x[:, extra:]).mean() for x in both]
    assert len(found.names) == 4 and found.names[2] == f"{blocks[1]}.{MODELS[name][2]}"
    before, reads, branch, after = found.values
    for part, read, given in zip(found.names, reads, branch, strict=True):
        torch.testing.assert_close(torch.stack([read, given]), torch.stack(variances[part]))
    torch.testing.assert_close(before[2], variances[blocks[0]][1])
    torch.testing.assert_close(after[3], variances[blocks[1]][1], rtol=1e-5, atol=0)
    torch.testing.assert_close(after[:3], before[1:], rtol=1e-5, atol=0)
    assert (found.values <= found.mean_square).all()


ONE = {"depth": 1}
ORDERS = [  # and what the last branch skips: the input or the output of a module
    (lambda: minivit.create("mixer_8px", **ONE), ("blocks.0.mixing", "blocks.0.mlp"), "blocks.0.norm2", 0),
    (lambda: minivit.create("feedforward_8px", **ONE), ("blocks.0.mlp", "blocks.0.mixing"), "blocks.0.norm2", 0),
    (lambda: minivit.create("vit_8px", **ONE, norm="post"), ("blocks.0.attention", "blocks.0.mlp"), "blocks.0.norm1", 1),
    (lambda: minivit.remove(minivit.create("vit_8px", **ONE), "norm"), ("blocks.0.attention", "blocks.0.mlp"), "blocks.0.mlp", 0),
]  # fmt: skip


@pytest.mark.parametrize(("make", "names", "part", "end"), ORDERS)
def test_every_order_of_parts_and_norms_is_understood(make, names, part, end):
    model, pictures = draw(make()).eval(), torch.rand(2, 1, 8, 8)
    found = branch_ratios(model, pictures)
    assert found.names == names
    seen = ends(model, pictures, [part, names[-1]])
    skip, branch = (x.double().norm(dim=-1) for x in (seen[part][end], seen[names[-1]][1]))
    torch.testing.assert_close(found.ratio[-1], (branch / skip).mean(0), rtol=1e-5, atol=0)


def test_branches_side_by_side_are_both_seen_with_what_they_are_added_to():
    model, pictures = minivit.create("vit_8px", depth=2), torch.rand(2, 1, 8, 8)
    for i in range(2):
        model.blocks[i] = ParallelBlock(64, 4, 128)
    found = branch_ratios(draw(model).eval(), pictures)
    names = tuple(f"blocks.{i}.{part}" for i in range(2) for part in ("attention", "mlp"))
    assert found.names == names
    parts = ends(model, pictures, ["blocks.1", *names[2:]])
    skip = parts["blocks.1"][0].double().norm(dim=-1)
    for name, ratio in zip(names[2:], found.ratio[2:], strict=True):
        known = (parts[name][1].double().norm(dim=-1) / skip).mean(0)
        torch.testing.assert_close(ratio, known, rtol=1e-5, atol=0)
    importance = branch_importance(model, pictures, torch.tensor([1, 2]))
    assert importance.names == names


MEASURES = [head_importance, branch_importance]
LABELS = torch.tensor([1, 4])


def loss_of(model, pictures, labels):
    output = model(pictures)
    return F.cross_entropy(getattr(output, "logits", output), labels).item()


STANDS_IN = {"mean": lambda y: y.mean(0, True).expand_as(y), "resample": lambda y: y.flip(0)}


@pytest.mark.parametrize("by", STANDS_IN)
@pytest.mark.parametrize("name", MODELS)
def test_everybodys_branches_with_their_mean_and_with_each_others(name, by):
    model, pictures, _ = everybodys(name)

    def change(_, x, output):
        return placed(STANDS_IN[by](first(output)))(_, x, output)

    found = branch_importance(model, pictures, LABELS, by=by, batch_size=1)
    for part, loss in zip(found.names, found.loss, strict=True):
        with hooked(model, [part], change):
            known = loss_of(model, pictures, LABELS)
        assert loss.item() == pytest.approx(known, rel=1e-5)
        assert abs(known - found.whole_loss) > 1e-5


@pytest.mark.parametrize("block", [models.KnownBlock, models.SharedBlock])
def test_attention_that_is_the_same_for_all_images_is_lost_by_zero_and_not_by_mean(block):
    weights = torch.rand(HEADS, 12, 12, generator=torch.Generator().manual_seed(0))
    weights /= weights.sum(-1, keepdim=True)
    model = models.Known(weights, torch.eye(12).expand(HEADS, -1, -1))
    model.blocks = nn.ModuleList(block(part.weights) for part in model.blocks)
    zero, mean, other = (head_importance(model, images(3), by=by) for by in get_args(By))
    whole = torch.full((2, HEADS), zero.whole_loss).double()
    for found in mean, other:
        torch.testing.assert_close(found.loss, whole, rtol=1e-5, atol=0)
    assert (zero.loss - zero.whole_loss).abs().min() > 1e-4


@pytest.mark.parametrize("by", STANDS_IN)
@pytest.mark.parametrize("name", MODELS)
def test_everybodys_heads_look_where_they_do_in_the_mean_or_for_the_other_image(name, by):
    model, pictures, _ = everybodys(name)
    found = head_importance(model, pictures, LABELS, by=by)
    for block, losses in zip(found.names, found.loss, strict=True):
        for head, own in enumerate(torch.eye(HEADS, dtype=torch.bool)[..., None, None]):
            change = lambda w, own=own: torch.where(own, STANDS_IN[by](w), w)  # noqa: E731
            with minivit.replace(model, {f"{block}.weights": change}):
                known = loss_of(model, pictures, LABELS)
            assert losses[head].item() == pytest.approx(known, rel=1e-5)
            assert known != found.whole_loss


def test_other_images_are_never_ones_own_and_each_is_taken_once():
    for count in 2, 3, 50:
        others = other_images(count)
        assert sorted(others.tolist()) == list(range(count))
        assert (others != torch.arange(count)).all()


def test_other_images_of_reference_take_the_place_in_their_mean_or_one_each():
    model, labels = draw(minivit.create("vit_8px", depth=2)).eval(), torch.arange(3)
    x, two, name = torch.rand(3, 1, 8, 8), torch.rand(2, 1, 8, 8), "blocks.1.mlp"
    _, given = ends(model, two, [name])[name]
    known = []
    for new in given.mean(0, keepdim=True), given[[0, 1, 0]], given[[1, 0, 1]]:
        with hooked(model, [name], placed(new)):
            known.append(pytest.approx(loss_of(model, x, labels), rel=1e-5))
    found = partial(branch_importance, model, x, labels, name, reference=two, batch_size=2)
    mean, drawn = (found(by=by).loss.item() for by in ("mean", "resample"))
    assert mean == known[0] and drawn in known[1:]


def test_branches_can_be_named_where_a_relu_hides_the_addition():
    model, labels = draw(minivit.create("resnet_8px")).eval(), torch.arange(3)
    x = torch.rand(3, 1, 8, 8)
    found = branch_importance(model, x, labels, "blocks.?.norm2")
    assert found.names == tuple(f"blocks.{i}.norm2" for i in range(len(model.blocks)))
    for i, block in enumerate(model.blocks):
        with block.register_forward_hook(lambda m, given, _: m.shortcut(given[0]).relu()):
            assert found.loss[i].item() == pytest.approx(loss_of(model, x, labels), rel=1e-5)
    with pytest.raises(LookupError, match="no module matches 'norm3'"):
        branch_importance(model, x, labels, "norm3")


def test_what_has_no_entry_for_each_image_is_refused_by_mean_and_measured_by_zero():
    model, pictures, _ = everybodys("minivit mean")
    swin, windows = built(ARCHITECTURES["timm Swin"])
    packed = hf.PixtralVisionModel(hf.PixtralVisionConfig(**HF))
    squares = torch.rand(2, 3, 32, 32)

    def read_out(module, args, output):
        return output.last_hidden_state.view(len(args[0]), -1, 16).mean(1)

    packed.register_forward_hook(read_out)
    assert head_importance(swin, windows, LABELS).loss.isfinite().any()
    assert_refused([
        *((partial(measure, model, pictures, by="median"), ValueError, "'zero' or 'mean' or 'resample' as by: got 'median'") for measure in MEASURES),
        *((partial(measure, model, pictures[:1], by="resample"), ValueError, "expected two images or more.*: got 1") for measure in MEASURES),
        (partial(head_importance, swin, windows, by="mean"), ValueError, r"to give \[2, 1, 49, 49\] for 2 images.*got \[8, 1, 49, 49\], and \[4, "),
        (partial(head_importance, packed, squares, by="mean"), ValueError, r"got \[1, 2, 32, 32\], and \[1, 2, 16, 16\] for one image"),
        (partial(branch_importance, packed, squares, by="resample"), ValueError, r"got \[1, 32, 16\], and \[1, 16, 16\] for one image"),
    ])  # fmt: skip
