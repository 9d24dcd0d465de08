"""What several files of tests read, and none of them leaves changed."""

import pytest

from book.tools.edition.handout import hand_out
from book.tools.edition.tree import Edition


@pytest.fixture(scope="session")
def handed_out(tmp_path_factory):
    """The folder that students get."""
    folder = tmp_path_factory.mktemp("student") / "handout"
    hand_out(Edition(), folder)
    return folder
