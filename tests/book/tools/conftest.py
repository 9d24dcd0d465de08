"""What several files of tests read."""

import shutil

import pytest

from book.tools.edition.handout import hand_out
from book.tools.edition.tree import Edition


@pytest.fixture(scope="session")
def handout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("student") / "handout"
    hand_out(Edition(), folder)
    return folder


@pytest.fixture
def handed_out(handout, tmp_path):
    """The folder that students get: a copy, in which notebooks may write."""
    return shutil.copytree(handout, tmp_path / "handout")
