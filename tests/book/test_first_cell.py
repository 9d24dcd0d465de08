"""The first cell in Colab, where a notebook arrives on its own: played with a local repository."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tools.first_cell import ROOT, first_cell, repository


def git(*arguments, cwd):
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def published(tmp_path):
    """Environment in which the repository's address leads to a small copy with the release tag."""
    origin = tmp_path / "origin"
    without = shutil.ignore_patterns("__pycache__", "checkpoints")
    shutil.copytree(ROOT / "minivit", origin / "minivit", ignore=without)
    (origin / "course").mkdir()
    shutil.copy(ROOT / "course/__init__.py", origin / "course")
    for folder in ("course/claims", "book/solutions"):
        (origin / folder).mkdir(parents=True)
        (origin / folder / "a_file").touch()
    url, tag = repository()
    git("init", ".", cwd=origin)
    git("add", ".", cwd=origin)
    git("commit", "-m", "release", cwd=origin)
    git("tag", tag, cwd=origin)
    return os.environ | {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_VALUE_0": url,
                         "GIT_CONFIG_KEY_0": f"url.{origin.as_uri()}.insteadOf"}  # fmt: skip


def run(cell, folder, environment):
    shown = "import json; print(json.dumps([minivit.__file__, course.__file__, os.getcwd()]))"
    code = f"{cell}\nimport minivit, course\n{shown}"
    result = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment,
                            capture_output=True, text=True)  # fmt: skip
    assert result.returncode == 0, result.stderr
    *said, last = result.stdout.splitlines()
    return json.loads(last), said


@pytest.mark.parametrize("name", ["book/02_attention.ipynb", "book/solutions/02_attention.ipynb"])
def test_alone_it_fetches_the_release_and_enters_the_notebooks_folder(tmp_path, published, name):
    content = tmp_path / "content"
    content.mkdir()
    clone = content / repository()[0].rsplit("/", 1)[1]
    for _ in range(2):  # the second time the clone is there
        (minivit, course, cwd), _ = run(first_cell(ROOT / name), content, published)
        assert minivit == str(clone / "minivit/__init__.py")
        assert course == str(clone / "course/__init__.py")
        assert cwd == str((clone / name).parent)


@pytest.mark.parametrize("folder", ["book", "book/solutions", "."])
def test_in_the_repository_it_only_makes_the_packages_importable(folder):
    nowhere = os.environ | {"PATH": ""}  # so that neither git nor pip could be called
    (minivit, _, cwd), said = run(
        first_cell(ROOT / "book/02_attention.ipynb"), ROOT / folder, nowhere
    )
    assert minivit == str(ROOT / "minivit/__init__.py")
    assert cwd == str((ROOT / folder).resolve())
    assert said == []
