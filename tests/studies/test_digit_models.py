import pytest
import torch

from studies.shared.digit_models import fraction_of, plain, summary
from vitlab.claims.measurements.representations import across
from vitlab.data import load_data
from vitlab.instruments import Localisation


def test_the_mean_over_pairs_leaves_the_diagonal_out():
    assert across(torch.tensor([[9.0, 1.0], [3.0, 9.0]])) == 2


def test_inner_and_outer_places_are_told_apart():
    own = torch.zeros(3, 3)
    own[1, 1] = 0.8  # the one inner place
    table = torch.diag(own.flatten()).view(3, 3, 3, 3) - 0.1
    found = summary(Localisation(table, torch.zeros(0, 3, 3)))
    assert found["inner"] == pytest.approx(0.8) and found["outer"] == pytest.approx(0, abs=1e-6)
    assert found["own"] == pytest.approx(0.8 / 9 - 0.1, abs=1e-6)
    assert found["inner hits"] == found["outer hits"] == 1  # all patches are alike to the others


def test_figures_are_rounded_however_deep_they_lie():
    found = {"a": [torch.tensor([0.12346, 1.0]), 0.33333], "b": {"c": 2 / 3}}
    assert plain(found) == {"a": [[0.1235, 1.0], 0.3333], "b": {"c": 0.6667}}


def test_a_fraction_of_the_digits_differs_by_seed_and_not_in_preprocessing():
    whole = load_data("DIGITS")
    a, b = fraction_of(whole, 0.1, 0), fraction_of(whole, 0.1, 1)
    assert len(a.train) == pytest.approx(len(whole.train) / 10, rel=0.1)
    assert a.mean == b.mean == whole.mean and a.std == whole.std
    assert not torch.equal(a.train.images, b.train.images)
