"""For all tests."""

import random
import zlib

import numpy as np
import pytest
import torch
from jaxtyping import install_import_hook

# Checks types and their shapes at every call, in modules imported from here on. As in mypy, an int
# is a float.
install_import_hook(
    [
        *(f"minivit.{name}" for name in ["vit", "patches", "positions", "model", "parts"]),
        *(f"minivit.{name}" for name in ["variants", "mixer", "resnet", "hybrid"]),
        *(f"vitlab.{name}" for name in ["instruments", "inversion", "figures"]),
    ],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)

from minivit.import_torchvision import patch_torchvision_import  # noqa: E402

patch_torchvision_import()  # before a test imports torchvision, or timm


def seed(name: str) -> None:
    """Sets the generators that draw where no other is given."""
    number = zlib.crc32(name.encode())
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


# Each fixture and each test draws the same numbers, whatever ran before it.


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef) -> None:
    seed(fixturedef.argname)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    seed(item.nodeid)


@pytest.fixture(autouse=True, scope="module")
def threads():
    """As many threads for the next file: the command and the studies set their number."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
