"""The shapes that types state are checked while the tests run."""

import pytest
import torch
from jaxtyping import TypeCheckError
from matplotlib.figure import Figure

from tests.refusals import unchecked
from vitlab.figures import gallery
from vitlab.instruments import Probe, Ridge, patch_means, ridge


def test_a_wrong_shape_is_caught():
    x, y = torch.rand(5, 3), torch.rand(4, 2)
    with pytest.raises(TypeCheckError, match=r"ridge[\s\S]*rows=5"):
        ridge(x, y)  # not as many rows of targets as of features
    with pytest.raises(TypeCheckError, match="patch_means"):
        patch_means(x, (1, 1))
    with pytest.raises(TypeCheckError, match="parameter 'labels'"):
        gallery(Figure().subplots(), torch.rand(2, 3, 8, 8), torch.tensor([0, 1, 2]), ["one"])


def test_the_fields_of_results_are_checked():
    with pytest.raises(TypeCheckError, match="Ridge"):
        Ridge(torch.ones(3, 2), *torch.ones(2, 3), torch.ones(5, 3))
    with pytest.raises(TypeCheckError, match="Probe"):
        Probe("high", 0.5, 1.0)


def test_users_have_no_such_check():
    with unchecked(), pytest.raises(ValueError, match="features .* and targets .*three rows"):
        ridge(torch.rand(5, 3), torch.rand(4, 2))
