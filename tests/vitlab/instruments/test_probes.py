"""What probes, a model's own head and norms read from layers whose content is known."""

import math

import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import Ridge as Reference
from torch import nn

import minivit
import vitlab
from tests.parity import close, random
from tests.refusals import unchecked
from tests.vitlab.instruments.models import DEPTH, MODELS, Known, everybodys, images
from tests.vitlab.tried.by_hand import ends
from vitlab.instruments.probes import explained


@pytest.mark.parametrize(("n", "features"), [(30, 8), (12, 40)])
def test_ridge_equals_a_librarys_on_all_rows_and_with_each_row_left_out(n, features):
    x = random(n, features) * 5 + 2
    y = x @ random(features, 3, seed=1) + random(n, 3, seed=2) + 7
    unit = torch.linalg.svdvals(x - x.mean(0)).square().mean().item()
    fit = vitlab.ridge(x, y, [0.3])
    theirs = Reference(alpha=0.3 * unit).fit(x.numpy(), y.numpy())
    close(fit.weight, torch.tensor(theirs.coef_).mT)
    close(fit(x), torch.tensor(theirs.predict(x.numpy())))
    for i in (0, n - 1):
        rest = [j for j in range(n) if j != i]
        other = Reference(alpha=0.3 * unit).fit(x[rest].numpy(), y[rest].numpy())
        close(fit.left_out[i], torch.tensor(other.predict(x[i : i + 1].numpy()))[0])


def test_the_penalty_is_the_one_with_the_least_error_on_rows_left_out():
    x = random(30, 20)
    y = x @ random(20, 1, seed=1) + 10 * random(30, 1, seed=2)
    left_out = {p: vitlab.ridge(x, y, [p]).left_out for p in (1e-6, 1.0, 3.0, 1e3)}
    errors = {p: (guess - y).square().sum() for p, guess in left_out.items()}
    chosen = vitlab.ridge(x, y, list(errors)).penalty.item()
    assert chosen == min(errors, key=errors.get) and chosen in (1.0, 3.0)
    exact = x @ random(20, 1, seed=1)
    assert vitlab.ridge(x, exact).penalty.item() == 1e-8
    both = torch.cat([exact, random(30, 1, seed=3) * 50], 1)
    shared, own = vitlab.ridge(x, both), vitlab.ridge(x, both, each=True)
    assert shared.penalty.unique().numel() == 1 and own.penalty[1] > 1e3 * own.penalty[0]
    close(own.weight[:, :1], vitlab.ridge(x, exact).weight)
    close(own.left_out[:, 1:], vitlab.ridge(x, both[:, 1:]).left_out)
    close(explained(exact, vitlab.ridge(x, exact)(x)), torch.ones(1).double())


def test_a_probe_finds_classes_that_a_line_separates_and_no_others():
    x, noise = random(300, 6), random(300, 6, seed=1)
    labels = x[:, :3].argmax(1)
    train, test = slice(0, 200), slice(200, 300)
    found = vitlab.probe((x[train] * 1e-3, labels[train]), (x[test] * 1e-3, labels[test]))
    assert found.accuracy > 0.85 and abs(found.accuracy - found.validation) < 0.1
    found = vitlab.probe((noise[train], labels[train]), (noise[test], labels[test]))
    assert found.accuracy < 1 / 3 + 0.1


class Planted(nn.Module):
    """Tokens with the class in those of some places alone."""

    def __init__(self, *places):
        super().__init__()
        self.layer, self.places = nn.Identity(), places

    def forward(self, images):
        tokens = random(len(images), 7, 5)
        tokens[:, self.places, 2] += 10 * images[:, 0, :1, 0]
        return self.layer(tokens)


def test_the_class_is_read_from_the_patches():
    labels = torch.arange(80) % 2
    images = labels.double()[:, None, None, None].expand(80, 1, 4, 6)  # 2 x 3 patches
    data, test = (images[:60], labels[:60]), (images[60:], labels[60:])
    planted = Planted(0), Planted(*range(1, 7))
    found = [vitlab.probes(model, data, test, "layer", grid=(2, 3)) for model in planted]
    first, rest = (one["layer"].accuracy for one in found)
    assert rest == 1 and first < 0.8


def test_the_members_error_is_the_ensembles_and_the_spread():
    draws = torch.Generator().manual_seed(0)
    labels, p = torch.randint(3, (20,), generator=draws), torch.randn(7, 20, 3, generator=draws)
    result, targets = vitlab.ensemble(p, labels), F.one_hot(labels, 3)
    by_hand = [[(p[m, i] - targets[i]).square().sum() for i in range(20)] for m in range(7)]
    assert result.member == pytest.approx(result.together + result.spread, rel=1e-12)
    assert result.member == pytest.approx(torch.tensor(by_hand).mean().item(), rel=1e-6)
    labels = torch.tensor([1, 0])
    right = F.one_hot(labels, 2).double()
    off = torch.tensor([[2.0, -1.0], [0.5, 3.0]])
    both = vitlab.ensemble(torch.stack([right + off, right - off]), labels)  # which cancel
    assert both.together == 0 and both.spread == both.member == pytest.approx(14.25 / 2)
    assert both.together_accuracy == 1 and both.accuracy == 0.5


def test_positions_that_show_the_class_are_read_and_others_are_not():
    """Images whose left half shows the class, in a network that is one convolution."""
    labels = torch.arange(300) % 3
    images = torch.randn(300, 3, 4, 8, generator=torch.Generator().manual_seed(1)) * 0.1
    images[:, :, :, :4] += F.one_hot(labels, 3)[:, :, None, None]
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 4, 4))
    torch.nn.init.dirac_(net[0].weight)
    net[0].bias.data[:] = torch.tensor([0.0, 5.0, -2.0])
    sides = (images[:200], labels[:200]), (images[200:], labels[200:])
    result = vitlab.position_ensembles(net, *sides, "0", batch_size=70)["0"]
    # One of two positions knows; the mean of both still leans to the right class.
    assert result.together_accuracy == 1 and 0.6 < result.accuracy < 0.75
    assert result.member == pytest.approx(result.together + result.spread, rel=1e-9)
    assert result.spread > 0.05


def test_answers_are_counted_where_the_cues_disagree():
    shapes = torch.tensor([0, 1, 2, 3, 4, 4])
    textures = torch.tensor([1, 1, 0, 0, 0, 0])  # the second image has no conflict
    counts = vitlab.cue_conflict(torch.tensor([0, 1, 2, 0, 3, 4]), shapes, textures)
    assert (counts.shape, counts.texture, counts.neither, counts.share) == (3, 1, 1, 0.75)
    assert math.isnan(vitlab.cue_conflict(torch.full((6,), -1), shapes, textures).share)


# What each library's model makes of the tokens after its blocks.
HEADS = {
    "minivit mean": lambda m, x: m.head(m.norm(x).mean(1)),
    "minivit class": lambda m, x: m.head(m.norm(x)[:, 0]),
    "minivit attention": lambda m, x: m.head(m.pool(m.norm(x))),
    "torchvision": lambda m, x: m.heads(m.encoder.ln(x)[:, 0]),
    "timm": lambda m, x: m.head(m.norm(x)[:, 0]),
    "huggingface": lambda m, x: m.classifier(m.vit.layernorm(x)[:, 0]),
}


@pytest.mark.parametrize("name", MODELS)
@unchecked()  # tokens are given to a model's head as if each were an image
def test_everybodys_heads_read_every_token(name):
    """Where one token is read, it is that; where a mean is, of tokens that are all like it."""
    model, pictures, grid = everybodys(name)
    found = vitlab.logit_lens(model, pictures, every_token=True)
    blocks = [MODELS[name][1].format(i) for i in range(DEPTH)]
    tokens = MODELS[name][3] + grid[0] * grid[1]
    assert found.logits.shape == (DEPTH + 1, 2, tokens, 5)
    seen = ends(model, pictures, blocks)
    states = [seen[blocks[0]][0], *(after for _, after in seen.values())]
    for rows, x in zip(found.logits, states, strict=True):
        for token in 0, 4, tokens - 1:
            known = HEADS[name](model, x[:, token : token + 1])
            torch.testing.assert_close(rows[:, token], known.double(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("factor", "is_one"), [(2.9, False), (3.1, True), (0.1, False)])
def test_an_outlier_is_above_three_medians_and_found_where_it_is_from_its_block_on(factor, is_one):
    def plant(x):  # in the second of two images, on the patch in row 1 and column 2
        y = F.normalize(x, dim=-1)
        y[1:, 2 + 6] *= factor
        return y

    model = Known(*torch.eye(14).expand(2, 1, -1, -1), extra=2)
    assert vitlab.token_norms(model, images()).first is None
    with minivit.replace(model, {"blocks.1": plant}):
        found = vitlab.token_norms(model, images())
    assert found.ratio[1, 1, 1, 2].item() == pytest.approx(factor, rel=1e-5)
    assert found.largest[1].item() == pytest.approx(max(factor, 1), rel=1e-5)
    assert found.first == ("blocks.1" if is_one else None)
    assert found.outliers.nonzero().tolist() == [[1, 1, 1, 2]] * is_one
    assert found.places[1, 1, 2] == found.places.sum() == is_one / 2
    assert found.fraction.tolist() == [0, is_one / 24]
