"""The page's engine answers as torch does, which holds the same rounded numbers."""

import pytest
import torch
from einops import rearrange

import minivit
from minivit.catalogue import config_for, shipped
from minivit.patches import patchify, unpatchify
from tests.page.conftest import images, job, model
from tests.parity import draw
from vitlab.convert.page import KNOWN, rounded
from vitlab.instruments import logit_lens, rollout

CLOSE = 1e-4  # of logits, whose spread is some units
RELATIVE = 1e-5  # of numbers above 10: without norms there are some of 10^9
RUNS = [n for n in shipped() if type(minivit.create(n)) in KNOWN]
PATCHES = ["digits_vit", "cifar10_vit_cls"]  # a mean and a class token are read
SLICE = {"digits_vit", "digits_mixer", "digits_resnet", "cifar10_vit", "cifar10_feedforward"}


def by_size(names):
    """Of the larger models some are enough for `make test`; together they take a minute."""
    return [pytest.param(n, marks=[] if n in SLICE else [pytest.mark.full]) for n in names]


def close(ours, theirs):
    assert ours.shape == theirs.shape
    assert theirs.abs().max() > 1e-3, "zeros would agree with anything that computes nothing"
    return (ours - theirs).abs().max() <= max(CLOSE, RELATIVE * (theirs.abs().max() - 10))


@pytest.mark.parametrize("name", by_size(RUNS))
def test_logits_are_torchs(name, answers):
    seen = images(model(name), 100 if name.startswith("digits") else 4)
    found = answers(model(name), seen, [job(i, "logits") for i in range(len(seen))])
    expected = model(name)(model(name).preprocess(seen))
    assert expected.std(0).min() > 1e-2, "the images get different answers"
    assert close(torch.stack([one["logits"] for one in found]), expected)


PARTS = ["attention", "mlp", "norm", "norm1", "norm2", "residual", "positions"]
REMOVALS = [
    *([(part, None)] for part in PARTS),
    *([(part, [1])] for part in PARTS[:-1]),
    [("residual", [2]), ("attention", [2])],  # without residuals a removed branch hands on
    [("mlp", [0, 3]), ("residual", None)],
    [("norm", None), ("attention", [0]), ("positions", None)],
]


def removals(name):
    """The same of a Mixer, which has a mixing in place of attention, and may have no positions."""
    mixer = name.endswith(("mixer", "feedforward"))
    for steps in REMOVALS:
        yield [("mixing" if mixer and part == "attention" else part, b) for part, b in steps]


MOST = [*PATCHES, "cifar10_vit", "digits_mixer", "cifar10_feedforward", "cifar10_vit_no_norm"]


@pytest.mark.parametrize("name", by_size(MOST))
def test_every_switch_does_what_remove_does(name, answers):
    seen = images(model(name), 1)
    cases = list(removals(name))
    found = answers(model(name), seen, [job(0, "logits", removed=steps) for steps in cases])
    whole = model(name)(model(name).preprocess(seen))[0]
    moved = 0
    for steps, one in zip(cases, found, strict=True):
        without = model(name)
        for part, blocks in steps:
            without = minivit.remove(without, part, blocks)
        # In float64: without norms float32 itself is off by more than 1e-4.
        expected = without.double()(without.preprocess(seen).double())[0]
        assert close(one["logits"], expected), steps
        moved += not close(expected, whole)
    assert moved > len(cases) / 2


@pytest.mark.parametrize("name", by_size([*PATCHES, "cifar10_vit"]))
def test_attention_states_lens_and_rollout_are_torchs(name, answers):
    of, seen = model(name), images(model(name), 2)
    found = answers(of, seen, [job(i, "attention", "states", "lens", "rollout") for i in (0, 1)])
    with minivit.record(of, "blocks.*.attention.weights", "blocks.*") as at:
        of(of.preprocess(seen))
    lenses = logit_lens(of, of.preprocess(seen), batch_size=1).logits
    rolled = rollout(of, of.preprocess(seen)).patches
    for i, one in enumerate(found):
        weights = [at[f"blocks.{b}.attention.weights"][i] for b in range(of.config.depth)]
        assert close(one["attention"], torch.stack(weights).flatten(1))
        states = torch.stack([at[f"blocks.{b}"][i] for b in range(of.config.depth)])
        assert close(one["states"][1:], states.flatten(1))
        assert close(one["lens"], lenses[:, i])
        assert close(one["rollout"], rolled[:, i])


@pytest.mark.parametrize("name", by_size(PATCHES))
def test_heads_that_are_off_add_nothing_and_patches_move_as_images_do(name, answers):
    of, seen = model(name), images(model(name), 1)
    c, heads, hidden = of.config, [[1, 0], [1, 3], [2, 2]], [0, 5, 6]
    order = torch.randperm(c.grid[0] * c.grid[1], generator=torch.Generator().manual_seed(1))
    switches = {"order": order.tolist(), "covered": hidden}
    jobs = job(0, "logits", heads=heads), job(0, "logits", "seen", "deletion", **switches)
    off, moved = answers(of, seen, [*jobs])

    def without(block):
        keep = torch.ones(c.heads, 1, 1)
        keep[[head for b, head in heads if b == block]] = 0
        return lambda weights: weights * keep

    with minivit.replace(of, {f"blocks.{b}.attention.weights": without(b) for b in (1, 2)}):
        assert close(off["logits"], of(of.preprocess(seen))[0])

    x = of.preprocess(seen)
    x = unpatchify(patchify(x, c.patch_size)[:, order], c.grid, c.patch_size)

    def covered(places):
        gone = patchify(x, c.patch_size)
        gone[:, places] = patchify(x.mean((2, 3), keepdim=True).expand_as(x), c.patch_size)[:, :1]
        return unpatchify(gone, c.grid, c.patch_size)

    assert close(moved["seen"], rearrange(covered(hidden), "1 c h w -> (h w c)"))
    assert close(moved["logits"], of(covered(hidden))[0])
    rows = [of(covered(hidden))[0] - of(covered([*hidden, p]))[0] for p in range(len(order))]
    assert close(moved["deletion"], torch.stack(rows))


def test_a_model_of_another_shape_than_square_is_run_as_torch_runs_it(answers):
    others = {type(config_for(name)[0]).__name__ for name in set(shipped()) - set(RUNS)}
    assert others <= {"HybridConfig"}, "shipped models of all other kinds run"
    sizes = {"image_size": (8, 12), "patch_size": (2, 4), "depth": 2, "classes": 3}
    of = draw(minivit.create("vit_32px", pool="class", **sizes)).eval()
    of.preprocess = minivit.Preprocess((8, 12), (8, 12))
    of.classes = ["a", "b", "c"]
    rounded(of)
    seen = images(of, 2)
    found = answers(of, seen, [job(i, "logits", "rollout") for i in (0, 1)])
    assert close(torch.stack([one["logits"] for one in found]), of(of.preprocess(seen)))
    rolled = rollout(of, of.preprocess(seen)).patches
    assert close(torch.stack([one["rollout"] for one in found], 1), rolled)
