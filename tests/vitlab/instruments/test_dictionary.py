"""Dictionaries that were planted, and what a model answers with one put in."""

import pytest
import torch

from vitlab.instruments import learn_dictionary

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
