"""What Binder installs: a Python that the pins allow, and all that the book imports."""

import ast
import json
import re
import sys
from importlib.metadata import metadata, packages_distributions

from packaging.specifiers import SpecifierSet

from book.tools.address import ROOT
from book.tools.notebooks import of_the_book
from tests.test_project import PINS

LINES = (ROOT / ".binder/requirements.txt").read_text(encoding="utf-8").splitlines()
WANTED = {re.split("==", line)[0].lower() for line in LINES if re.match(r"\w", line)}
# Jupyter, torch and transformers bring the first three; only tests make mutants, and no notebook
# writes ONNX.
NOT_WANTED = {"ipython", "jinja2", "huggingface_hub", "cosmic_ray"}
NOT_WANTED |= {"onnx", "onnxruntime", "onnxscript"}


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
