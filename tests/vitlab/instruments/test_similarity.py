"""CKA against its definitions and invariances, and dictionaries that were planted."""

from itertools import combinations

import pytest
import torch
import torchvision

import minivit
from tests.parity import close, draw, random
from vitlab.instruments import CKA, cka, learn_dictionary, linear_cka


def biased(x, y):
    """Kornblith et al. (2019), section 3: by the features, not by the Gram matrices."""
    x, y = x - x.mean(0), y - y.mean(0)
    return (y.mT @ x).norm() ** 2 / ((x.mT @ x).norm() * (y.mT @ y).norm())


def hsic_1(x, y):
    """Nguyen et al. (2021), equation 3, term by term."""
    n, one = len(x), torch.ones(len(x), 1).double()
    gram, other = (m @ m.mT * (1 - torch.eye(n)) for m in (x, y))
    first = (gram @ other).trace()
    second = (one.mT @ gram @ one * (one.mT @ other @ one)).sum() / ((n - 1) * (n - 2))
    third = 2 / (n - 2) * (one.mT @ gram @ other @ one).sum()
    return (first + second - third) / (n * (n - 3))


def unbiased(x, y):
    return hsic_1(x, y) / (hsic_1(x, x) * hsic_1(y, y)).sqrt()


def related(n=20):
    """Two representations of n images with something in common, and a mean far from zero."""
    x = random(n, 7)
    return x + 3, x @ random(7, 30, seed=1) + 2 * random(n, 30, seed=2) - 5


def test_it_equals_the_formulas_and_a_matrix_is_like_its_rotation_its_multiple_and_itself_moved():
    x, y = related()
    q = torch.linalg.qr(random(7, 7, seed=3)).Q
    for debiased, formula in (False, biased), (True, unbiased):
        known = formula(x, y)
        for same in x, x @ q, -3 * x, x + 100:
            close(linear_cka(x, same, debiased=debiased), torch.tensor(1.0).double(), 1e-8)
            close(linear_cka(same, y, debiased=debiased), known, 1e-8)
    assert 0.1 < unbiased(x, y) < biased(x, y) < 0.9
    odd = torch.zeros(20, 3).double()
    odd[4] = torch.tensor([1.0, 0.3, -2.0])  # a layer that knows one image alone
    for one in odd, odd + 0.1, odd.float() + 0.1:
        with pytest.raises(ValueError, match=r"\['y'\] give the same .*, or all but one"):
            linear_cka(x, one)
        close(linear_cka(x, one.double(), debiased=False), biased(x, one.double()), 1e-6)


def test_wide_noise_is_unlike_other_noise_only_without_bias():
    """Unbiased values may be negative: dmarx/cka_pytorch#2."""
    pairs = [(random(30, 500, seed=s), random(30, 500, seed=s + 50)) for s in range(8)]
    assert min(linear_cka(x, y, debiased=False) for x, y in pairs) > 0.9
    values = torch.stack([linear_cka(x, y) for x, y in pairs])
    assert values.abs().max() < 0.15 and values.mean().abs() < 0.05
    for seed in range(50):  # in the smallest batches no NaN, and nothing above 1
        value = linear_cka(random(4, 3, seed=seed), random(4, 900, seed=seed + 99))
        assert value.isfinite() and value.abs() <= 1 + 1e-12


def test_minibatches_average_to_what_all_images_give():
    """Over all choices of a batch the mean of an unbiased estimate is the whole: exactly."""
    x, y = related(7)
    batches = [list(b) for b in combinations(range(7), 4)]
    for a, b in (x, y), (x, x), (y, y):
        mean = torch.stack([hsic_1(a[i], b[i]) for i in batches]).mean()
        close(mean, hsic_1(a, b))
    seen = CKA()
    for i in batches:
        seen.update({"x": x[i]}, {"y": y[i]})
    close(seen.result().values[0, 0], linear_cka(x, y))
    naive = torch.stack([biased(x[i], y[i]) for i in batches]).mean()
    assert naive > linear_cka(x, y) + 0.1


def test_layers_of_a_model_one_batch_or_many():
    """A short last batch is left out: AntixK/PyTorch-Model-Compare#4."""
    model = draw(minivit.create("vit_8px", dim=12, heads=3, depth=3).eval())
    images = random(24, 1, 8, 8).float()
    found = cka(model, images, "blocks.?", "patch_embedding")
    assert found.rows == found.columns == ("patch_embedding", "blocks.0", "blocks.1", "blocks.2")
    with minivit.record(model, *found.rows) as seen, torch.no_grad():
        model(images)
    x = [seen[name].flatten(1).double() for name in found.rows]
    close(found.values, torch.stack([torch.stack([unbiased(a, b) for b in x]) for a in x]), 1e-4)
    many = cka(model, images.split(10), "blocks.?", "patch_embedding")
    a, b = x[1].split(10), x[3].split(10)  # the last batch counts as much as the others

    def mean(p, q):
        return torch.stack([hsic_1(i, j) for i, j in zip(p, q, strict=True)]).mean()

    close(many.values[1, 3], mean(a, b) / (mean(a, a) * mean(b, b)).sqrt(), 1e-4)
    assert (many.values.diagonal() - 1).abs().max() < 1e-9
    left_over = cka(model, [*images.split(10), images[:3]], "blocks.?", "patch_embedding")
    assert torch.equal(left_over.values, many.values)


def test_two_models_on_images_that_are_not_square():
    images = random(12, 3, 16, 24).float()
    theirs = draw(torchvision.models.resnet18(num_classes=4)).eval()
    sizes = {"image_size": (16, 24), "patch_size": 8, "dim": 16, "depth": 2}
    ours = draw(minivit.create("vit_32px", **sizes)).eval()
    found = cka(ours, images, "blocks.?", other=theirs, other_names=["layer1", "layer4", ""])
    assert found.rows == ("blocks.0", "blocks.1") and found.columns == ("layer1", "layer4", "")
    with minivit.record(ours, "blocks.1") as seen, torch.no_grad():
        ours(images)
        close(found.values[1, 2], linear_cka(seen["blocks.1"], theirs(images)), 1e-4)
    close(cka(ours, images, "blocks.?", other=ours).values, cka(ours, images, "blocks.?").values)


SIZE, DIM, ACTIVE = 32, 16, 2


@pytest.fixture(scope="module")
def recovered():
    """Sums of a few of ``SIZE`` directions, with amounts from 0.5 to 1.5, and a common offset."""
    g = torch.Generator().manual_seed(0)
    atoms = torch.randn(SIZE, DIM, generator=g)
    atoms /= atoms.norm(dim=1, keepdim=True)
    which = torch.rand(4000, SIZE, generator=g).argsort(1)[:, :ACTIVE]
    drawn = 0.5 + torch.rand(4000, ACTIVE, generator=g)
    amounts = torch.zeros(4000, SIZE).scatter(1, which, drawn)
    x = amounts @ atoms + 0.7
    return atoms, amounts, x, learn_dictionary(x[:3000], SIZE, k=ACTIVE, steps=1000)


def test_a_planted_dictionary_is_recovered(recovered):
    atoms, amounts, x, found = recovered
    near = atoms @ found.directions.T
    assert near.amax(1).min() > 0.97  # cosine
    assert sorted(near.argmax(1).tolist()) == list(range(SIZE))
    # Also which of them each token uses, in tokens that it was not learnt from.
    used = found.codes(x[3000:])[:, near.argmax(1)] > 0.2
    assert (used == (amounts[3000:] > 0)).double().mean() > 0.98


def test_it_says_how_much_it_explains_and_with_how_few(recovered):
    *_, x, found = recovered
    fit = found.fit(x[3000:])
    left, whole = (y.var(0, correction=0).sum() for y in (x[3000:] - found(x[3000:]), x[3000:]))
    assert fit.explained == pytest.approx(1 - (left / whole).item(), abs=1e-3)
    assert fit.explained > 0.9 and fit.active <= ACTIVE and fit.dead == 0
    one = learn_dictionary(x[:3000], SIZE, k=1, steps=200).fit(x[3000:])
    assert one.active <= 1 and one.explained < fit.explained - 0.1
    codes = found.codes(x)
    assert codes.min() == 0 and (codes > 0).sum(1).max() == ACTIVE
    torch.testing.assert_close(found.directions.norm(dim=1), torch.ones(SIZE))
    torch.testing.assert_close(found.decoded(codes[:1] * 0)[0], found.offset * found.scale)
    assert not any(parameter.requires_grad for parameter in found.parameters())


def test_the_size_of_tokens_does_not_matter(recovered):
    x = recovered[2][:500]
    small, large = (learn_dictionary(y, SIZE, k=ACTIVE, steps=50) for y in (x, 1024 * x))
    torch.testing.assert_close(large.directions, small.directions, rtol=0, atol=1e-4)
