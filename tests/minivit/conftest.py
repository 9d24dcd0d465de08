import pytest

import minivit
from minivit._torchvision import mend

mend()  # before a test imports torchvision, or timm


@pytest.fixture(scope="session")
def listed():
    """The table of models, which takes a second to make."""
    return minivit.models()
