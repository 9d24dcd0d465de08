import re
import subprocess
import sys
from pathlib import Path

import pytest

import minivit


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_import_minivit_loads_nothing_heavier_than_torch_and_einops():
    heavy = "{'torchvision', 'matplotlib', 'IPython', 'scipy', 'skimage', 'course', 'yaml', 'PIL', 'safetensors', 'sklearn', 'minivit.training', 'minivit.cli'}"
    result = run(f"import sys, minivit; print({heavy} & set(sys.modules))")
    assert result.stdout.strip() == "set()", result.stderr


USE = "import torch, torchvision.transforms.v2; print(torchvision.models.vit_b_32().eval()(torch.zeros(1, 3, 224, 224)).shape)"


@pytest.mark.parametrize(
    "code",
    [
        f"from course import check\nimport torchvision\n{USE}",
        f"from minivit.hub.import_torchvision import mend\nmend()\nimport timm, torchvision\n{USE}",
        pytest.param(
            f"try: import torchvision\nexcept RuntimeError: pass\nfrom course import check\nimport timm\n{USE}",
            marks=pytest.mark.full,
        ),
        pytest.param(
            f"from minivit.hub.import_torchvision import imported\ntorchvision = imported()\n{USE}",
            marks=pytest.mark.full,
        ),
    ],
)
def test_torchvision_imports_whatever_build_of_torch_is_installed(code):
    result = run(code)
    assert "torch.Size([1, 1000])" in result.stdout, result.stderr


def test_import_minivit_leaves_the_imports_of_a_program_as_they_are():
    result = run(
        "import sys, torch; a = [*sys.meta_path]; import minivit; print(a == sys.meta_path)"
    )
    assert result.stdout == "True\n"


def test_a_torchvision_that_works_by_itself_is_run_once_and_nothing_is_declared(tmp_path):
    (tmp_path / "torchvision.py").write_text("print('run')")
    code = "from minivit.hub import import_torchvision as one; one.mend(); import torchvision; print(one._declared)"
    assert run(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}").stdout == "run\n[]\n"


def test_a_package_that_is_missing_is_one_sentence_with_what_installs_it():
    for missing, code, said in (
        ("matplotlib", "import minivit; minivit.figures", 'minivit: pip install ".[figures]"'),
        ("sklearn", "from minivit.data import load_data; load_data('DIGITS')", 'minivit: pip install ".[train]"'),
        ("torchvision", "import minivit; minivit.load('vit_b_32')", "pip install torch==2."),
    ):  # fmt: skip
        result = run(f"import sys; sys.modules[{missing!r}] = None\n{code}")
        last = result.stderr.splitlines()[-1]
        assert last.startswith("ModuleNotFoundError: ") and said in last, result.stderr
        assert "+cpu" not in last


@pytest.mark.full
def test_another_failure_of_torchvision_is_not_hidden(tmp_path):
    (tmp_path / "torchvision.py").write_text("raise RuntimeError('something else')")
    result = run(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from course import check; import torchvision"
    )
    assert "RuntimeError: something else" in result.stderr


# From the ground up: a room imports from those before it, and from no other.
FLOORS = [
    "_extras",
    "networks",
    "recording",
    "krylov",
    "surgery",
    "hub",
    "analysis",
    "inversion",
    "figures",
    "data",
    "training",
    "audit",
    "commands",
    "cli",
]


def test_imports_go_down_only():
    package = Path(minivit.__file__).parent
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        imported = re.findall(r"^ *from minivit\.(\w+)", path.read_text(encoding="utf-8"), re.M)
        for other in set(imported) - {room}:
            assert FLOORS.index(other) < FLOORS.index(room), f"{path}: {room} imports {other}"


def test_inversion_and_analysis_are_imported_by_name_and_do_not_know_each_other():
    for name, others in ("inversion", "'analysis'"), ("analysis", "'inversion'"):
        code = f"import sys, minivit; assert 'minivit.{name}' not in sys.modules; import minivit.{name}\n"
        code += (
            f"print({others} in [m.split('.')[1] for m in sys.modules if m.startswith('minivit.')])"
        )
        result = run(code)
        assert result.stdout.strip() == "False", result.stderr
    assert run("import minivit.inversion; minivit.inversion.fibre").returncode == 0


def test_the_packages_inside_are_there_after_import_minivit_and_load_when_touched():
    names = ["analysis", "figures", "inversion", "training"]
    code = (
        f"import sys, minivit; names = {names}\n"
        "print({f'minivit.{n}' for n in names} & set(sys.modules), set(names) <= set(dir(minivit)))\n"
        "print([getattr(minivit, n).__name__ for n in names])\n"
        "minivit.nothing"
    )
    result = run(code)
    before, after = result.stdout.splitlines()
    assert (before, after) == ("set() True", str([f"minivit.{name}" for name in names]))
    assert result.stderr.endswith("module 'minivit' has no attribute 'nothing'\n")


@pytest.mark.full  # half a minute where mypy has looked at nothing before
def test_type_checkers_see_the_packages_inside_and_names_that_there_are_not(tmp_path):
    (tmp_path / "use.py").write_text(
        "import minivit\nreveal_type(minivit.figures.heat)\nminivit.nothing\n"
    )
    command = [sys.executable, "-m", "mypy", str(tmp_path / "use.py")]
    said = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert "def (values: " in said[0] and 'Module has no attribute "nothing"' in said[1]
