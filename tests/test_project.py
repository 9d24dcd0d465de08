"""The project's own files: pins, wheel, Binder, the make targets that README names."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
LINES = (ROOT / "requirements.txt").read_text().splitlines()
PINS = dict(
    line.split("#")[0].strip().lower().split("==") for line in LINES if re.match(r"\w", line)
)


def test_every_requirement_is_pinned_and_says_what_it_is_for():
    for line in LINES:
        assert not line or line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+ +# .+", line), (
            line
        )


def test_no_requirement_stands_twice():
    names = [line.split("==")[0].lower() for line in LINES if "==" in line]
    assert len(set(names)) == len(names)


def test_binder_takes_pinned_packages_and_the_cpu_build_of_the_same_torch():
    lines = (ROOT / ".binder/requirements.txt").read_text().splitlines()
    wanted = [line.lower() for line in lines if re.match(r"\w", line)]
    assert f"torch=={PINS['torch']}+cpu" in wanted
    assert f"torchvision=={PINS['torchvision']}+cpu" in wanted
    assert "--constraint ../requirements.txt" in lines
    assert {name.split("==")[0] for name in wanted} <= set(PINS)


def test_the_workflow_tries_every_python_that_the_package_allows():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least, most = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    tried = workflow["jobs"]["tests"]["strategy"]["matrix"]["python"]
    assert tried == [f"3.{minor}" for minor in range(int(least), int(most))]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = f"{sys.executable} -m pip wheel . --no-deps --no-build-isolation --quiet -w {folder}"
    subprocess.run(command.split(), cwd=ROOT, check=True)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_minivit_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"minivit", "minivit-0.1.0.dist-info"}
    assert {"minivit/py.typed", "minivit/attention.py", "minivit/figures/book.mplstyle"} <= set(
        names
    )


def test_the_models_that_travel_load_from_the_wheel_alone(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import minivit; print(minivit.__file__, *[minivit.load(one.name).classes[-1] "
        "for one in minivit.models() if one.weights == ('shipped',)])"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-P", "-c", code]
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert said.stderr == ""
    file, *last = said.stdout.split()
    assert Path(file).is_relative_to(tmp_path) and set(last) == {"9", "truck"}
    cards = {path.stem for path in (tmp_path / "minivit/checkpoints").glob("*.md")}
    assert cards == {path.stem for path in (tmp_path / "minivit/checkpoints").glob("*.safetensors")}


def test_the_version_stands_in_the_metadata_and_in_the_package():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f'__version__ = "{version}"' in (ROOT / "minivit/__init__.py").read_text()


def test_no_address_stands_in_for_the_repositorys():
    holder = ["git", "grep", "-l", "--fixed-strings", "github.com/" + "example"]
    assert subprocess.run(holder, cwd=ROOT, capture_output=True, text=True).stdout == ""


@pytest.mark.skipif(os.name == "nt", reason="README says what to do without make")
def test_make_help_lists_every_target_that_the_texts_name():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    targets = {line.split()[0] for line in listed.splitlines() if line}
    texts = "".join((ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md"))
    named = set(re.findall(r"`?make ([a-z-]+)", texts))
    assert {"book", "serve", "test", "test-all", "test-site", "notebooks", "help"} <= targets
    assert named <= targets
