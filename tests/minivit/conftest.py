import pytest
import torch

import minivit


@pytest.fixture(scope="session")
def listed():
    """The table of models, which takes a second to make."""
    return minivit.models()


@pytest.fixture
def net():
    """A model of eleven blocks, made for recordings."""
    from tests.minivit.test_recording import Net

    torch.manual_seed(0)
    return Net().double()


@pytest.fixture
def x():
    """What ``net`` reads."""
    return torch.randn(2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
