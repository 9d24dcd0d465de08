"""Removing and transplanting, compared with models written out by hand."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torchvision

import minivit
from minivit import remove, save, transplant
from tests.parity import close, draw, random
from tests.refusals import assert_refused

SIZES = {"image_size": 8, "patch_size": 4, "channels": 2, "classes": 5, "dim": 12, "depth": 3}
MODELS = {
    "vit": ("vit_8px", SIZES | {"heads": 3}),
    "vit, class token": ("vit_8px", SIZES | {"heads": 3, "pool": "class"}),
    "vit, post": ("vit_8px", SIZES | {"heads": 3, "norm": "post", "positions": "sincos2d"}),
    "mixer": ("mixer_8px", SIZES),
    "feedforward": ("feedforward_8px", SIZES),
}
IMAGES = random(3, 2, 8, 8, seed=1)
PARTS = ["mixes", "mlp", "norm", "norm1", "norm2", "residual"]  # "mixes": attention or mixing
BLOCKS = [None, [], [1], range(2), [0, 2]]
# A model, what it lacks already, a part and blocks.
REMOVALS = [
    # Every pair of a model, a part and blocks, each at least once.
    *((kind, [], part, BLOCKS[(i + j) % len(BLOCKS)])
      for i, kind in enumerate(MODELS) for j, part in enumerate(PARTS)),
    *((kind, ["residual"], part, blocks) for kind in ["vit", "mixer", "feedforward"]
      for part in ["mixes", "mlp", "norm"] for blocks in [None, [1]]),
    *((kind, [], "positions", None) for kind in MODELS if kind != "mixer"),
]  # fmt: skip


def made(kind, seed=0, removed=(), **changes):
    name, sizes = MODELS[kind]
    model = minivit.create(name, **sizes | changes)
    for part in removed:
        model = remove(model, part)
    return draw(model.double().eval(), seed).requires_grad_()


def named(kind, part):
    return part if part != "mixes" else "attention" if "vit" in kind else "mixing"


def by_hand(model, x, part=None, blocks=None):
    """Logits of a model without a part in some blocks, written out with the whole model's modules."""
    post = getattr(model.config, "norm", None) == "post"
    mlp_first = getattr(model.config, "first", None) == "mlp"
    residual = not model.removed  # the one part that a model may lack here already
    x = model.patch_embedding(x)
    if model.class_token is not None:
        x = torch.cat([model.class_token.expand(len(x), -1, -1), x], 1)
    x = x if part == "positions" else x + getattr(model.positions, "table", 0)
    for i, block in enumerate(model.blocks):
        gone = part if blocks is None or i in blocks else None
        mixes = block.attention if hasattr(block, "attention") else block.mixing
        steps = [("mixes", mixes), ("mlp", block.mlp)][:: -1 if mlp_first else 1]
        for (name, layer), norm in zip(steps, ["norm1", "norm2"], strict=True):

            def normed(x, norm=norm, block=block, gone=gone):
                return x if gone in ("norm", norm) else getattr(block, norm)(x)

            y = x if post else normed(x)
            if gone == name:  # zero onto x, or the identity
                x = x if residual else y
            else:
                x = layer(y) if gone == "residual" or not residual else x + layer(y)
            x = normed(x) if post else x
    x = x if part == "norm" and blocks is None else model.norm(x)
    x = x.mean(1) if model.class_token is None else x[:, 0]
    return F.linear(x, model.head.weight, model.head.bias)


@pytest.mark.parametrize(("kind", "removed", "part", "blocks"), REMOVALS, ids=str)
def test_a_removed_part_leaves_what_is_written_out_by_hand(kind, removed, part, blocks):
    model, x = made(kind, removed=removed), IMAGES
    model.patch_embedding.requires_grad_(False)
    before, whole = copy.deepcopy(model.state_dict()), model(x)
    close(whole, by_hand(model, x))
    without = remove(model, named(kind, part), blocks)
    close(without(x), by_hand(model, x, part, blocks))
    if blocks == []:
        assert torch.equal(without(x), whole)
    else:
        assert (without(x) - whole).abs().max() > 1e-3
    frozen = [name for name, p in without.named_parameters() if not p.requires_grad]
    assert frozen == ["patch_embedding.projection.weight", "patch_embedding.projection.bias"]
    assert not any(m.training for m in without.modules())
    assert all(m.training for m in remove(model.train(), named(kind, part), blocks).modules())
    for tensor in without.state_dict().values():  # nothing is shared: the original is as it was
        tensor.zero_()
    assert torch.equal(model.eval()(x), whole)
    close(model.state_dict(), before, 0)


@pytest.mark.parametrize("kind", ["vit", "feedforward"])
def test_parts_may_be_removed_in_any_order(kind):
    model, x, mixes = made(kind), IMAGES, named(kind, "mixes")
    parts = [(mixes, [0, 1]), ("residual", [1, 2]), ("norm1", None), ("mlp", [2])]
    results = []
    for order in parts, parts[::-1]:
        without = model
        for part, blocks in order:
            without = remove(without, part, blocks)
        results.append(without(x))
    assert torch.equal(*results) and (results[0] - model(x)).abs().max() > 1e-3


@pytest.mark.parametrize("blocks", [None, [1]])
@pytest.mark.parametrize("part", ["mixes", "mlp", "norm", "residual", "positions"])
@pytest.mark.parametrize("kind", MODELS)
def test_a_saved_model_says_what_was_removed_and_is_loaded_without_it(tmp_path, kind, part, blocks):
    blocks = None if part == "positions" else blocks
    without = remove(made(kind).float(), named(kind, part), blocks)
    without = remove(without, "norm1", [0])
    save(without, tmp_path / "model.safetensors")
    back, x = minivit.load(tmp_path / "model.safetensors"), IMAGES.float()
    assert torch.equal(back(x), without(x))
    first = (named(kind, part), None if blocks is None else (1,))
    assert back.removed == without.removed == (first, ("norm1", (0,)))


def test_numbers_fill_a_named_model_without_parts_only_if_it_lacks_the_same(tmp_path):
    trained, path = minivit.load("cifar10_vit_no_norm"), tmp_path / "state.pth"
    torch.save(trained.state_dict(), path)
    loaded = minivit.load("cifar10_vit_no_norm", path)
    assert loaded.removed == trained.removed == (("norm", None),)
    assert torch.equal(loaded.head.weight, trained.head.weight)
    path = tmp_path / "model.safetensors"
    save(remove(minivit.create("vit_8px"), "norm"), path)
    said = r"saved with removed=\(\('norm', None\),\) \(asked for: \(\)"
    with pytest.raises(ValueError, match=said):
        minivit.load("vit_8px", path)


@pytest.mark.parametrize(
    "part",
    ["patch_embedding", "positions", "class_token", "blocks", "mixes", "mlp", "norm1", "norm", "head"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["vit, class token", "feedforward", "mixer"])
def test_a_transplant_changes_the_numbers_of_its_part_and_no_others(kind, part):
    if kind == "mixer" and part in ("positions", "class_token"):  # it has none
        return
    source, target = made(kind, seed=1), made(kind, seed=2)
    before = [copy.deepcopy(model.state_dict()) for model in (source, target)]
    result = transplant(source, target, named(kind, part))
    names = {named(kind, part), *(["norm1", "norm2"] if part == "norm" else [])}
    changed = {key: not names.isdisjoint(key.split(".")) for key in result.state_dict()}
    assert any(changed.values())
    for key, tensor in result.state_dict().items():
        assert torch.equal(tensor, before[0 if changed[key] else 1][key]), key
    for tensor in result.state_dict().values():  # nothing is shared
        tensor.zero_()
    close([source.state_dict(), target.state_dict()], before, 0)


def test_some_blocks_are_transplanted_and_none_gives_the_target():
    source, target = made("vit", seed=1, depth=11), made("vit", seed=2, depth=11)
    x = IMAGES
    tokens = target.positions(target.patch_embedding(x), (2, 2))
    for i in range(11):  # block 1 is not taken for block 10
        tokens = (source if i == 1 else target).blocks[i](tokens)
    expected = target.head(target.norm(tokens).mean(1))
    for numbers in [1], {1}, range(1, 2), np.array([1]), [np.int32(1)], torch.tensor([1]):
        assert torch.equal(transplant(source, target, "blocks", numbers)(x), expected)
        assert remove(target, "mlp", numbers).removed == (("mlp", (1,)),)
    assert torch.equal(transplant(source, target, "blocks", [])(x), target(x))
    every = transplant(source, target, "blocks")
    for part in "patch_embedding", "positions", "norm", "head":
        every = transplant(source, every, part)
    assert torch.equal(every(x), source(x))


def test_a_part_goes_from_one_family_to_another_where_it_is_built_alike():
    vit, mixer = made("vit", seed=1), made("mixer", seed=2, mlp_ratio=2)
    for part in "patch_embedding", "mlp", "norm", "head":
        mixer = transplant(vit, mixer, part)
    x = IMAGES
    tokens = vit.patch_embedding(x)
    assert torch.equal(mixer.patch_embedding(x), tokens)
    assert torch.equal(mixer.blocks[2].mlp(tokens), vit.blocks[2].mlp(tokens))
    assert torch.equal(mixer.head(mixer.norm(tokens)), vit.head(vit.norm(tokens)))


def test_the_copy_keeps_its_dtype_and_dropout_and_takes_that_of_models_in_training():
    source, target = made("vit", dropout=0.2, stochastic_depth=0.1).train(), made("vit").float()
    result = transplant(source, target, "blocks")
    assert result.blocks[2].mlp.up.weight.dtype == torch.float32
    assert (result.training, result.blocks[2].mlp.dropout.p) == (False, 0)
    assert torch.equal(result.blocks[2].mlp.up.weight, source.blocks[2].mlp.up.weight.float())


def wide_and_high(kind):
    """Two models with as many patches in other places."""
    return made(kind, image_size=(16, 32)), made(kind, image_size=(32, 16))


def test_what_cannot_be_done_is_refused_with_what_was_given_and_expected():
    vit, theirs = made("vit"), torchvision.models.VisionTransformer(8, 4, 3, 3, 12, 24)
    large = made("vit", classes=5).requires_grad_(False)
    large.head.bias.fill_(1e6)
    classed = made("vit, class token")
    assert_refused([
        (lambda: remove(theirs, "mlp"), TypeError, "from_torchvision"),
        (lambda: transplant(vit, theirs, "mlp"), TypeError, "from_torchvision"),
        (lambda: remove(vit, "mixing"), ValueError, "a ViT: got 'mixing'"),
        (lambda: remove(made("vit", stochastic_depth=0.1), "residual"), ValueError, "stochastic_depth=0.1"),
        (lambda: remove(vit, "positions", [1]), ValueError, r"\[1\]"),
        (lambda: remove(vit, "mlp", [0, 3]), ValueError, r"\[0, 3\]"),
        (lambda: remove(vit, "mlp", 1), ValueError, "1"),
        (lambda: remove(vit, "mlp", [True]), ValueError, r"\[True\]"),
        (lambda: remove(vit, "mlp", np.array([False, True, True])), ValueError, r"array"),
        (lambda: transplant(vit, vit, "mlp", torch.tensor([1.0])), ValueError, r"tensor"),
        (lambda: transplant(vit, vit, "residual"), ValueError, "a ViT: got 'residual'"),
        (lambda: transplant(vit, vit, "class_token"), ValueError, "no parameters to transplant in 'class_token'"),
        (lambda: transplant(classed, vit, "positions"), ValueError, r"'positions': .* positions.table \(\[5, 12\], expected \[4, 12\]\)"),
        (lambda: transplant(made("vit", classes=6), vit, "head"), ValueError, r"head.bias \(\[6\], expected \[5\]\)"),
        (lambda: transplant(made("vit", heads=4), vit, "blocks"), ValueError, r"'blocks': blocks.0.attention.heads is 4 \(expected: 3\)"),
        (lambda: transplant(remove(vit, "residual"), vit, "blocks", [1]), ValueError, "blocks.1 is NoResidualBlock"),
        (lambda: transplant(remove(vit, "attention", [1]), vit, "attention"), ValueError, "4 missing: blocks.1.attention.out.bias"),
        (lambda: transplant(*wide_and_high("vit"), "positions"), ValueError, r"'positions': positions.grid is \(4, 8\) \(expected: \(8, 4\)\)"),
        *(
            (lambda kind=kind, part=part: transplant(*wide_and_high(kind), part), ValueError, r"positions.grid is \(4, 8\)")
            for kind, part in [("mixer", "mixing"), ("mixer", "blocks"), ("feedforward", "norm2")]
        ),
        (lambda: transplant(made("feedforward", image_size=(4, 12)), made("mixer", mixing_norm="tokens", first="mlp", mixing_hidden=68), "mixing"), ValueError, r"positions.grid is \(1, 3\) \(expected: \(2, 2\)\)"),
        (lambda: transplant(large, made("vit").half(), "head"), ValueError, "'head': .*1 with NaN or infinity: head.bias"),
    ])  # fmt: skip
