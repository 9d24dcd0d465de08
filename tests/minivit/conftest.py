import resource
from contextlib import contextmanager

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


@contextmanager
def full_disk(room):
    """A write past this many bytes fails as it does on a full disk, with another number."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            yield caught
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
