"""The shapes that types state are checked while the tests run, and not where users call."""

import pytest
import torch
from jaxtyping import TypeCheckError
from matplotlib.figure import Figure

from tests.refusals import unchecked
from vitlab.figures import gallery
from vitlab.instruments import Ridge, patch_means, ridge


def test_a_wrong_shape_is_caught_while_the_tests_run():
    x, y = torch.rand(5, 3), torch.rand(4, 2)
    with pytest.raises(TypeCheckError, match=r"ridge[\s\S]*rows=5"):
        ridge(x, y)  # not as many rows of targets as of features
    with pytest.raises(TypeCheckError, match="patch_means"):
        patch_means(x, (1, 1))
    with pytest.raises(TypeCheckError, match="parameter 'labels'"):
        gallery(Figure().subplots(), torch.rand(2, 3, 8, 8), torch.tensor([0, 1, 2]), ["one"])
    with pytest.raises(TypeCheckError, match="Ridge"):
        Ridge(torch.ones(3, 2), *torch.ones(2, 3), torch.ones(5, 3))
    with unchecked(), pytest.raises(ValueError, match="features .* and targets .*three rows"):
        ridge(x, y)
