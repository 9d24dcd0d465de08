"""In models with a planted cause the right measurement moves, and those that ask something else do not."""

import copy

import pytest
import torch
from torch import nn

import minivit
from minivit.parts import local_mask
from tests.parity import Function
from tests.vitlab.claims import planted
from tests.vitlab.claims.planted import changed, digits, figure, measured, outcome
from vitlab.claims.ledger import claims
from vitlab.claims.measurements import ask
from vitlab.claims.measuring import Subject
from vitlab.data.photographs import crops
from vitlab.instruments import low_pass


def same(names, model, other, images):
    """Those measurements say the same of both models, to rounding."""
    for name in names:
        before, after = (outcome(name, vit, images) for vit in (model, other))
        assert before == pytest.approx(after, abs=1e-6), name


def test_attention_made_uniform_looks_as_far_in_every_block():
    model, images, _ = digits()
    even = changed(model, planted.uniform)
    for name in "C13", "L20":
        assert abs(figure(name, model, images)) > 0.01
        assert figure(name, even, images) == pytest.approx(0, abs=1e-6)
    assert figure("C04", even, images) == pytest.approx(1 / 16)
    assert figure("V33", even, images[:4]) == pytest.approx(0, abs=1e-6)
    assert figure("V20", model, images) > 0.1 and figure("V20", even, images) < 1e-10
    same(("V28", "V30", "V17", "R12", "H12", "L10", "H10"), model, even, images)


def drawn(model, seed):
    torch.manual_seed(seed)
    return changed(model, lambda m: m.positions.table.normal_())


def test_shuffled_zeroed_and_missing_positions_and_an_unseen_colour_are_seen_in_the_table_at_most():
    model = minivit.load("cifar10_vit_gap")
    images = model.preprocess(crops(1)[0])
    order = torch.randperm(64, generator=torch.Generator().manual_seed(2))
    other = changed(model, lambda m: m.positions.table.copy_(m.positions.table[order]))
    assert figure("V28", model, images) > 0.5
    assert abs(figure("V28", other, images)) < 0.1
    same(("V30", "V32", "V17", "H10"), model, other, images)
    blind = changed(model, lambda m: m.patch_embedding.projection.weight[:, 0].zero_())
    assert torch.equal(blind(images), blind(images * torch.tensor([5.0, 1, 1])[:, None, None]))
    same(("V28", "V30", "V32", "V17", "R12", "H10"), model, blind, images)
    model, images, _ = digits()
    random = [ask("V28", Subject(drawn(model, seed), images), 0) for seed in range(60)]
    assert sum(row["low"] < 0 < row["high"] for row in random) >= 54
    words = {claims()["V28"].judge(row)["word"] for row in random}
    assert words <= {"weaker than claimed", "too uncertain to tell"}
    without = changed(model, lambda m: m.positions.table.zero_())
    assert "has the vector zero" in outcome("V28", without, images)
    assert "no learned position" in outcome("V28", minivit.remove(model, "positions"), images)


def test_a_block_whose_heads_are_off_keeps_its_distances_and_adds_nothing():
    model, images, _ = digits()
    off = changed(model, lambda m: planted.zero(m.blocks[0].attention.out))
    assert figure("V32", model, images) == figure("V32", off, images) == 0
    raised = [measured("H29", m, images).curves["raised by attention"][0] for m in (model, off)]
    assert raised[0] != 0 and raised[1] == 0
    same(("V28", "V30", "R12"), model, off, images)


def test_masks_show_in_what_tokens_depend_on():
    model, images, _ = digits()
    causal = changed(model, planted.masked(torch.ones(16, 16, dtype=torch.bool).tril()))
    near = changed(model, planted.masked(local_mask((4, 4), 3)))
    assert figure("L10", model, images) == figure("H12", model, images) == 1
    assert figure("L10", causal, images) == 0
    assert figure("H12", causal, images) == 9 / 16  # the token in the middle, and those before
    assert figure("H12", near, images) == 6 / 16  # at the left edge
    assert figure("H10", model, images) < 1e-10 and figure("H10", near, images) > 0.1
    same(("V28", "R12", "V30"), model, near, images)


def test_an_mlp_that_mixes_tokens_and_a_norm_that_keeps_their_mean_are_found():
    model, images, _ = digits()
    mixing = copy.deepcopy(model)
    mixed = lambda x, mlp: mlp(x) + x.mean(1, keepdim=True)  # noqa: E731
    mixing.blocks[1].mlp = Function(mixed, mixing.blocks[1].mlp)
    assert figure("R12", model, images) == 0
    assert figure("R12", mixing, images) >= 0.9 / 16
    same(("H12", "H10", "V28", "V32"), model, mixing, images)
    rms_norm = Function(lambda x: x / x.square().mean(-1, keepdim=True).sqrt())
    keeping = changed(model, lambda m: setattr(m.blocks[2], "norm1", rms_norm))
    assert figure("R43", model, images) < 1e-10
    assert figure("R43", keeping, images) > 1e-3


def test_mlps_without_a_bend_never_turn_round_and_ranks_fall_by_as_much_as_was_taken():
    model, images, _ = digits(2)
    short = changed(model, lambda m: setattr(m, "blocks", m.blocks[:1]))
    straight = changed(short, lambda m: setattr(m.blocks[0].mlp, "activation", nn.Identity()))
    assert figure("R50", short, images) == 1
    assert figure("R50", straight, images) == 0
    model, images, _ = digits(1)

    def blind(m):
        m.blocks = m.blocks[:1]
        m.blocks[0].attention.out.weight[:3] = 0  # three numbers of each of 16 tokens

    def one_token(m):
        m.blocks[-1] = Function(lambda x, *_: x.mean(1, keepdim=True).expand_as(x).clone())

    assert figure("R63", changed(model, blind), images) == 1
    assert figure("C16", model, images) == 0
    assert figure("C16", changed(model, one_token), images) == 64 - model.config.dim
    assert "has attention" in outcome("C17", model, images)
    network = Convolutions(*(conv(4) for _ in range(2)), conv(1, stride=4), start=4)
    assert figure("C17", network, torch.randn(4, 4, 8, 8)) == 4 / 256  # no more than the last map


def test_the_rank_of_attention_is_counted_over_images():
    model, images, _ = digits(2)
    short = changed(model, lambda m: setattr(m, "blocks", m.blocks[:1]))
    sums, attention = [], short.blocks[0].attention
    listening = attention.out.register_forward_pre_hook(lambda m, args: sums.append(args[0].sum()))
    with torch.no_grad():
        list(map(short, images.split(1)))
    listening.remove()
    at_one = Function(lambda y, out: out(y) * (y.sum() > sum(sums) / 2), attention.out)
    assert measured("R63", short, images).each.tolist() == [0, 0]
    attention.out = at_one
    assert sorted(measured("R63", short, images).each.tolist()) == [0, 1]
    assert figure("R63", short, images) == 0.5


def test_an_idle_model_has_alike_blocks_and_tokens_that_know_their_patch():
    model, images, _ = digits()
    resnet = minivit.load("digits_resnet")
    idle = changed(model, planted.silent)
    assert figure("R24", idle, images[:2]) == 1
    alike = [figure("C11", vit, images, beside=resnet) for vit in (model, idle)]
    assert alike[1] > alike[0] and alike[1] > 0.1
    assert figure("H29", idle, images) == 0
    assert figure("H23", idle, images) == 0  # neither smoother nor rougher behind any
    model, _, _ = digits()
    images = torch.randn(1000, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    more = {"beside": minivit.load("digits_resnet"), "batch_size": 100}
    pair = changed(model, planted.silent), model
    idle, trained = (figure("C15", m, images, **more) for m in pair)
    assert idle >= trained and 0 <= idle <= 1
    assert "needs 1,000 images" in outcome("C15", model, images[:999], **more)


class Convolutions(nn.Module):
    """Blocks of two convolutions each, the second of which leaves its map as it is."""

    def __init__(self, *blocks, start=1):
        super().__init__()
        self.stem = nn.Conv2d(start, start, 1)
        self.blocks = nn.Sequential(*(nn.Sequential(b, keep(b.out_channels)) for b in blocks))

    def forward(self, x):
        return self.blocks(self.stem(x)).mean((2, 3))


def conv(out, stride=1):
    torch.manual_seed(4 + out)
    return nn.Conv2d(4, out, 3, stride, padding=1 if stride == 1 else 0)


def keep(channels):
    layer = nn.Conv2d(channels, channels, 1, bias=False)
    nn.init.dirac_(layer.weight)
    return layer


def kernel(*rows):
    """A 3 x 3 convolution with this kernel, and a constant that keeps the mean above zero."""
    layer = nn.Conv2d(1, 1, 3, padding=1, padding_mode="circular", bias=False)
    layer.weight.data = torch.tensor(rows)[None, None].float()
    return layer


def test_blurring_and_sharpening_convolutions_are_told_apart():
    images = torch.randn(20, 1, 16, 16, generator=torch.Generator().manual_seed(0)) + 1
    blur = [[1 / 9] * 3] * 3
    sharpen = [[0, -1, 0], [-1, 5, -1], [0, -1, 0]]
    for kinds, share in (([blur, blur], 0), ([sharpen] * 2, 1), ([sharpen, blur], 0.5)):
        assert figure("H04", Convolutions(*(kernel(*rows) for rows in kinds)), images) == share


def test_overlapping_patches_reach_beyond_their_own_pixels_and_tokens_may_be_narrower():
    model, images, _ = digits()
    resnet = minivit.load("digits_resnet")
    wide = copy.deepcopy(model)
    old = wide.patch_embedding.projection
    wide.patch_embedding.projection = nn.Conv2d(1, old.out_channels, 4, stride=2, padding=1)
    assert figure("V30", model, images) == figure("V30", wide, images) == 0
    assert figure("V32", wide, images) == 0  # what it sees before attention does not count
    everything = measured("V32", wide, images).baselines["with what attention adds"]
    assert everything == 64 - 16
    leaking = copy.deepcopy(wide)  # a stem whose outputs know more than their window
    mean_added = Function(lambda x: x + x.mean())
    leaking.patch_embedding.projection = nn.Sequential(mean_added, wide.patch_embedding.projection)
    assert figure("V30", leaking, images) == 64 - 16
    assert figure("V14", model, images, beside=resnet) == 1
    assert figure("V14", wide, images, beside=resnet) == 4 / 64  # in the corners
    for dim, fewer in ((2, 1), (4, 0), (8, 0)):
        model = minivit.create("vit_8px", dim=dim, heads=1, depth=1).eval()
        assert figure("V17", model, images) == fewer


@pytest.mark.parametrize(("name", "other", "dim"), [("R29", "R31", 8), ("R31", "R29", 96)])
def test_filters_of_noise_have_no_pattern_and_those_of_waves_have(name, other, dim):
    torch.manual_seed(0)
    model = minivit.create("vit_32px", dim=dim, heads=1, depth=2).eval()
    images, resnet = torch.randn(2, 3, 32, 32), minivit.load("cifar10_resnet")
    columns = torch.cos(torch.pi * torch.arange(4).float())  # in turn
    waves = changed(model, lambda m: m.patch_embedding.projection.weight.copy_(columns))
    noise, pattern = (figure(name, vit, images, beside=resnet) for vit in (model, waves))
    assert noise - pattern > 0.8  # of eight filters, or of 96
    assert f"makes {dim} of 48" in outcome(other, model, images, beside=resnet)


def test_a_model_that_sees_low_frequencies_alone_goes_by_them():
    model = minivit.load("cifar10_vit_gap")
    images = model.preprocess(crops(40)[0])
    low = Function(lambda x, model: model(low_pass(x, 3 / 32)), model)
    more = {"beside": minivit.load("cifar10_resnet"), "white": (4.0,) * 3, "batch_size": 40}
    with torch.no_grad():  # the classes that each says, so that it is right on all
        classes = {vit: vit(images).argmax(1) for vit in (model, low)}
    plain, blurred = (measured("H26", vit, images, classes[vit], **more) for vit in (model, low))
    kept = [[m.curves[f"kept, {kind}-pass"] for kind in ("low", "high")] for m in (plain, blurred)]
    ahead = [(lower - higher).mean() for lower, higher in kept]
    assert ahead[1] > ahead[0] + 0.1
    assert (kept[1][0][1:] == 1).all()  # above what it sees nothing is missing
    lost = measured("H27", low, images, classes[low], **more).curves["accuracy lost"]
    assert lost[0] > 0 and (lost[1:] == 0).all()


def test_a_patch_made_long_is_found_by_its_norm_in_models_of_any_size_or_of_small_ones(monkeypatch):
    model, images, _ = digits()
    long = changed(model, lambda m: m.positions.table[5].mul_(100))
    for name in "T01", "T02":
        assert figure(name, model, images) < 3 < figure(name, long, images)
    alike, found = (
        measured("T02", m, images).curves["patches above 3 medians"] for m in (model, long)
    )
    assert (alike == 0).all() and found[0] == 1 / 16
    same(("V30", "V32", "V17", "R12"), model, long, images)
    monkeypatch.setattr("vitlab.claims.measurements.positions.LARGE", 100_000)
    assert outcome("T02", long, images) == figure("T02", long, images)
    assert "million weights" in outcome("T01", long, images)


def test_a_model_that_says_the_same_of_all_images_keeps_its_accuracy_on_larger_ones():
    model, images, labels = digits()

    def constant(m):
        planted.zero(m.head)
        m.head.bias[3] = 1

    assert figure("V16", changed(model, constant), images, torch.full_like(labels, 3)) == 1
    assert 0 < figure("V16", model, images, labels) < 1
