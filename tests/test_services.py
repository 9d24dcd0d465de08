"""What Binder installs, what two linters say of GitHub's files, and what README and the command's page say."""

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
from datetime import date
from importlib.metadata import metadata, packages_distributions
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import yaml
from packaging.specifiers import SpecifierSet
from PIL import Image

from book.tools.address import ROOT
from book.tools.notebooks import of_the_book
from tests.test_project import PINS

LINES = (ROOT / ".binder/requirements.txt").read_text(encoding="utf-8").splitlines()
WANTED = {re.split("==", line)[0].lower() for line in LINES if re.match(r"\w", line)}
WANTED -= {"nbgitpuller"}  # fetches the notebooks
# Jupyter, torch and transformers bring the first three; only tests make mutants, and no notebook
# writes ONNX, a quiz or an exam.
NOT_WANTED = {"ipython", "jinja2", "huggingface_hub", "cosmic_ray"}
NOT_WANTED |= {"onnx", "onnxruntime", "onnxscript", "pypandoc_binary"}


def sources():
    """Every text of Python that a notebook may run."""
    for path in of_the_book():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield from ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    for folder in ("minivit", "vitlab", "course", "studies"):
        for path in ROOT.glob(f"{folder}/**/*.py"):
            if "benchmarks" not in path.parts:
                yield path.read_text(encoding="utf-8")


def imported(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


def test_packages_are_pinned_allow_the_python_and_torch_is_the_cpu_build():
    assert set(PINS) >= WANTED and "--constraint ../requirements.txt" in LINES
    assert {f"{name}=={PINS[name]}+cpu" for name in ("torch", "torchvision")} <= set(LINES)
    runtime = (ROOT / ".binder/runtime.txt").read_text(encoding="utf-8").strip()
    version = re.fullmatch(r"python-(3\.\d+)", runtime)[1]
    for name in WANTED:
        assert SpecifierSet(metadata(name)["Requires-Python"] or "").contains(f"{version}.9"), name


def test_the_packages_are_those_that_notebooks_and_what_they_run_import():
    names = {name.split(".")[0] for source in sources() for name in imported(source)}
    names -= {*sys.stdlib_module_names, "minivit", "vitlab", "course", "studies", "book"}
    found = packages_distributions()
    needed = {found[name][0].lower() for name in names}
    assert needed - NOT_WANTED == WANTED


GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
FORMS = sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml"))


def test_the_linters_find_nothing():
    """What can be misused, such as actions that may change, and what the forms of GitHub are."""
    programs = [[Path(sysconfig.get_path("scripts"), "zizmor"), "--offline", "--quiet", *WORKFLOWS]]
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    programs.append([*check, "vendor.github-workflows", *WORKFLOWS])
    programs.append([*check, "vendor.github-issue-forms", *FORMS])
    programs.append([*check, "vendor.dependabot", GITHUB / "dependabot.yml"])
    for program in programs:
        done = subprocess.run(program, capture_output=True, text=True, encoding="utf-8")
        assert done.returncode == 0, done.stdout + done.stderr


def test_an_action_is_the_same_wherever_it_is_used_and_says_its_version():
    uses = [line.strip().removeprefix("- ") for path in WORKFLOWS
            for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]  # fmt: skip
    assert uses
    for line in uses:
        assert re.fullmatch(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
    assert len({line.split("@")[0] for line in uses}) == len(set(uses))


def test_the_workflows_lint_run_every_kind_of_test_and_need_no_make():
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    for step in ("ruff check .", "ruff format --check .", "mypy\n", "pytest --nbval",
                 "--ignore tests/browser -v --random-order\n", "pytest tests/site tests/browser\n", "python -m tests.hostile"):  # fmt: skip
        assert step in text, step
    for path in WORKFLOWS:
        assert not re.search(r"run: make\b", path.read_text(encoding="utf-8")), path.name
    steps = (GITHUB / "workflows/pages.yml").read_text(encoding="utf-8")
    order = ["tools.figures", "jupyter-book build", "take.sh", "pytest tests/site"]
    places = [*map(steps.find, order), steps.find("upload-pages-artifact")]
    assert steps.rfind("jupyter-book build") > steps.find("take.sh"), "which links what was made"
    assert places == sorted(places) and min(places) > 0, "each after what it needs"
    assert "needs: [build, launch]" in steps, "no button leads to a branch that is not there"


PAGE = (ROOT / "book/command.md").read_text(encoding="utf-8")


def test_the_snippets_of_the_page_run_in_their_order(tmp_path, monkeypatch, capsys):
    matplotlib.use("Agg")
    noise = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(noise).resize((80, 60)).save(tmp_path / "photo.jpg")
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(snippets) == 5 and not any("..." in line.partition("#")[0] for snippet in snippets
                                          for line in snippet.splitlines())  # fmt: skip
    names = {}
    for snippet in snippets:
        # A training takes seconds: a shorter one runs the same code.
        exec(snippet.replace("epochs=10", "epochs=0.5"), names)
    assert names["found"].image.shape == (1, 3, 32, 32)
    assert names["images"].shape == (1, 3, 32, 32)
    assert names["results"].test.pictures == 359
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert not list(tmp_path.glob("runs"))


def test_the_workflow_fills_in_the_links_at_the_top_and_the_citation_s_day_and_address(tmp_path):
    launch = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text())["jobs"]["launch"]
    (fill,) = (step["run"] for step in launch["steps"] if "sed" in step.get("run", ""))
    before = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "README.md").write_text(before, encoding="utf-8")
    around = os.environ | {"GITHUB_SERVER_URL": "https://github.com", "PYTHONPATH": str(ROOT)}
    around |= {"GITHUB_REPOSITORY": "Someone/a-book", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    (tmp_path / "python").symlink_to(sys.executable)
    cited = (ROOT / "CITATION.cff").read_text().partition("repository-code:")[0]
    (tmp_path / "CITATION.cff").write_text(cited)
    for _ in range(2):  # once it is published, the day stays
        subprocess.run(["bash", "-e", "-c", fill], cwd=tmp_path, env=around, check=True)
    after = (tmp_path / "README.md").read_text(encoding="utf-8").splitlines()
    (line,) = {*after} - {*before.splitlines()}
    site = "https://someone.github.io/a-book/"
    colab = "https://colab.research.google.com/github/Someone/a-book/blob/launch/book/00_in_an_hour.ipynb"
    assert re.findall(r"\((.*?)\)", line) == [site, colab, f"{site}book/live.html"]
    assert len(after) <= 90

    said = yaml.safe_load((tmp_path / "CITATION.cff").read_text())
    assert (said["url"], said["repository-code"]) == (site, "https://github.com/Someone/a-book")
    assert date.fromisoformat(said["date-released"]) <= date.today()
    # Zenodo asks for these beside title and authors, and reads them here if there is no other file.
    assert {"abstract", "license", "version"} < {*said} and not (ROOT / ".zenodo.json").exists()
    schema = ["--builtin-schema", "vendor.citation-file-format", tmp_path / "CITATION.cff"]
    assert subprocess.run([sys.executable, "-m", "check_jsonschema", *schema]).returncode == 0


@pytest.mark.parametrize("url", ["", "https://github.com/someone/a-book"])
def test_on_pypi_links_lead_to_the_repository_or_are_words(url):
    command = [sys.executable, "-m", "hatchling", "metadata", "readme"]
    around = os.environ | {"MINIVIT_REPOSITORY": url}
    shown = subprocess.check_output(command, cwd=ROOT, env=around, text=True)
    links = re.findall(r"\]\(([^)]+)\)", shown)
    assert all(link.startswith("https://") for link in links)
    assert any(link.startswith(f"{url}/actions/") for link in links) == bool(url)
    for path in re.findall(r"/(?:blob|raw)/HEAD/([^)]+)", shown):
        assert (ROOT / path).is_file()
    assert ("/raw/HEAD/" in shown) == ("![" in shown) == bool(url)  # images, not pages about them
