import pytest

import minivit


@pytest.fixture(scope="session")
def listed():
    """The table of models, which takes a second to make."""
    return minivit.models()
