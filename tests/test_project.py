"""The project's own files: pins, wheel, Binder, the make targets that README names."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import minivit

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
LINES = (ROOT / "requirements.txt").read_text().splitlines()
PINNED = [line.split("#")[0].strip().lower() for line in LINES if re.match(r"\w", line)]
PINS = dict(line.split("==") for line in PINNED)


def test_pins_are_what_the_package_needs_and_every_python_that_it_allows_is_tried():
    for line in filter(None, LINES):
        assert re.fullmatch(r"#.*|[\w.-]+==[\w.]+ +# .+", line), line
    assert len(PINS) == sum("==" in line for line in LINES), "none stands twice"
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    groups = PYPROJECT["dependency-groups"]
    lists += [group for name, group in groups.items() if name != "bench"]  # pins its own
    needed = [one for group in lists for one in group if isinstance(one, str)]
    assert sorted(re.match(r"[\w.-]+", one)[0].lower() for one in needed) == sorted(PINS)
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", one) for one in groups["bench"])
    least, most = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["requires-python"]).groups()
    workflow = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())
    tried = workflow["jobs"]["matrix"]["strategy"]["matrix"]["python"]
    assert tried == [f"3.{minor}" for minor in range(int(least), int(most))]
    prefix = "Programming Language :: Python :: "
    said = [one.removeprefix(prefix) for one in PROJECT["classifiers"] if one.startswith(prefix)]
    assert said == tried


def build(source, folder):
    """The wheel that pip makes of a folder or an archive of sources."""
    command = f"-m pip wheel {source} --no-deps --no-build-isolation --quiet -w {folder}"
    subprocess.run([sys.executable, *command.split()], cwd=ROOT, check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(".", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def outside(wheel, tmp_path_factory):
    """Runs code where there is nothing but the wheel."""
    folder = tmp_path_factory.mktemp("outside")
    zipfile.ZipFile(wheel).extractall(folder)

    def run(code):
        command = [sys.executable, "-P", "-c", f"import minivit; print(minivit.__file__)\n{code}"]
        environment = os.environ | {"PYTHONPATH": str(folder)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        file, _, out = done.stdout.partition("\n")
        assert Path(file).is_relative_to(folder), done.stderr
        return out, done.stderr

    return run


def test_the_wheel_holds_the_two_packages_alone_and_is_small(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    about = f"minivit-{minivit.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"minivit", "vitlab", about}
    wanted = "minivit/py.typed", "vitlab/figures/book.mplstyle", f"{about}/licenses/LICENSE"
    assert set(wanted) <= set(names)
    assert wheel.stat().st_size < 4e6


@pytest.mark.full
def test_the_sources_that_are_handed_out_make_the_same_wheel(wheel, tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    again = build(archive, tmp_path)
    one, other = (zipfile.ZipFile(path) for path in (wheel, again))
    first, second = ({i.filename: i.CRC for i in file.infolist()} for file in (one, other))
    assert first == second


def test_the_models_of_the_wheel_are_listed_and_load_from_it_alone(outside):
    out, err = outside(
        "for one in minivit.models():\n"
        "    if one.weights == ('shipped',): print(one.name, minivit.load(one.name).classes[-1])"
    )
    assert err == ""
    assert dict(line.split() for line in out.splitlines()) == {
        "cifar10_vit": "truck", "digits_mixer": "9", "digits_resnet": "9", "digits_vit": "9"
    }  # fmt: skip


@pytest.mark.parametrize("make", ["load", pytest.param("create", marks=pytest.mark.full)])
def test_a_model_that_is_in_the_repository_alone_is_said_to_be_there(outside, make):
    said = outside(f"minivit.{make}('cifar10_vit_gap')")[1].splitlines()[-1]
    path = "minivit/checkpoints/cifar10_vit_gap.safetensors"
    assert said.startswith("ValueError: cifar10_vit_gap ") and path in said
    assert (ROOT / path).is_file()


@pytest.mark.full  # a minute or two
def test_the_installed_command_audits_a_model_where_the_repository_is_not(wheel, tmp_path):
    """In an environment of its own, which has the packages that this one has, but no repository."""
    venv.create(tmp_path / "venv", with_pip=False)
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / Path(sys.executable).name
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.check_output(command, text=True).strip())
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    install = "-m pip --disable-pip-version-check install --quiet --no-deps --no-index"
    subprocess.run([python, *install.split(), wheel], check=True)

    command = [scripts / "minivit", "audit", "cifar10_vit", "--quick", "--out", tmp_path / "audits"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [*tmp_path.glob("audits/**/audit.html")], done.stdout
    assert str(ROOT) not in done.stdout


def test_every_model_has_a_card_and_the_version_stands_in_the_package_alone():
    files = [*(ROOT / "minivit/checkpoints").iterdir()]
    cards, models = ({f.stem for f in files if f.suffix == end} for end in (".md", ".safetensors"))
    assert cards == models
    version = minivit.__version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    assert re.search(rf"^## .*\b{re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M)
    holder = ["git", "grep", "-l", "--fixed-strings", "github.com/" + "example"]
    assert subprocess.run(holder, cwd=ROOT, capture_output=True, text=True).stdout == ""


@pytest.mark.skipif(os.name == "nt", reason="README says what to do without make")
def test_make_help_lists_every_target_that_the_texts_name():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    targets = {line.split()[0] for line in listed.splitlines() if line}
    pages = "README.md", "CONTRIBUTING.md", "book/command.md"
    texts = "".join((ROOT / name).read_text() for name in pages)
    named = set(re.findall(r"`?make ([a-z-]+)", texts))
    assert {"book", "serve", "quick", "test", "test-full", "test-site", "notebooks"} <= named
    assert named <= targets


def test_code_and_weights_are_mit_text_and_figures_cc_by_and_the_citation_says_the_same():
    assert (PROJECT["license"], PROJECT["license-files"]) == ("MIT", ["LICENSE"])
    code, text = [(ROOT / name).read_text() for name in ("LICENSE", "LICENSE-text")]
    assert code.startswith("MIT License\n") and PROJECT["authors"][0]["name"] in code
    assert text.startswith("Attribution 4.0 International\n") and "Section 8 --" in text
    footer = yaml.safe_load((ROOT / "_config.yml").read_text())["html"]["extra_footer"]
    assert "MIT" in footer and "https://creativecommons.org/licenses/by/4.0/" in footer
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (said["license"], said["keywords"]) == (PROJECT["license"], PROJECT["keywords"])
    assert said["authors"] == PROJECT["authors"]
