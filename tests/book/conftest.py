"""What several files of tests read."""

import shutil

import pytest

from book.tools.edition.handout import hand_out
from book.tools.edition.tree import Edition
from book.tools.wheels import NAMES


@pytest.fixture(scope="session")
def handout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("student") / "handout"
    hand_out(Edition(student=True), folder)
    return folder


@pytest.fixture
def handed_out(handout, tmp_path):
    """The folder that students get: a copy, in which notebooks may write."""
    return shutil.copytree(handout, tmp_path / "handout")


@pytest.fixture(scope="session")
def packages(handout, tmp_path_factory):
    """Nothing of the book but what the first line of a notebook would install."""
    folder = tmp_path_factory.mktemp("alone") / "packages"
    for name in NAMES:
        shutil.unpack_archive(handout / "wheels" / name, folder, "zip")
    return folder
