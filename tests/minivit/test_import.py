import subprocess
import sys

import pytest


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_import_minivit_loads_nothing_heavier_than_torch_and_einops():
    heavy = "{'torchvision', 'matplotlib', 'IPython', 'scipy', 'skimage', 'course', 'yaml', 'PIL', 'safetensors', 'sklearn', 'vitlab'}"
    result = run(f"import sys, minivit; print({heavy} & set(sys.modules))")
    assert result.stdout.strip() == "set()", result.stderr


USE = "import torch, torchvision.transforms.v2; print(torchvision.models.vit_b_32().eval()(torch.zeros(1, 3, 224, 224)).shape)"


@pytest.mark.parametrize(
    "code",
    [
        f"from course import check\nimport torchvision\n{USE}",
        f"from minivit.import_torchvision import mend\nmend()\nimport timm, torchvision\n{USE}",
        pytest.param(
            f"try: import torchvision\nexcept RuntimeError: pass\nfrom course import check\nimport timm\n{USE}",
            marks=pytest.mark.full,
        ),
        pytest.param(
            f"from minivit.import_torchvision import imported\ntorchvision = imported()\n{USE}",
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
    code = "from minivit import import_torchvision as one; one.mend(); import torchvision; print(one._declared)"
    assert run(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}").stdout == "run\n[]\n"


def test_a_package_that_is_missing_is_one_sentence_with_what_installs_it():
    for missing, code, said in (
        ("matplotlib", "import vitlab; vitlab.figures", 'minivit: pip install ".[figures]"'),
        ("sklearn", "from vitlab.data import load_data; load_data('DIGITS')", 'minivit: pip install ".[train]"'),
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


def test_minivit_works_where_vitlab_is_hidden():
    result = run(
        "import sys; sys.modules['vitlab'] = None; import minivit, torch\n"
        "model = minivit.load('digits_vit')\n"
        "with minivit.record(model, 'blocks.*.attention.weights') as seen:\n"
        "    model(torch.zeros(2, 1, 8, 8))\n"
        "print(len(seen), minivit.remove(model, 'mlp').removed)"
    )
    assert result.stdout == "4 (('mlp', None),)\n", result.stderr


def test_the_packages_of_vitlab_are_there_after_its_import_and_load_when_touched():
    names = ["claims", "data", "figures", "inversion", "training"]
    result = run(
        f"import sys, vitlab; names = {names}\n"
        "print({f'vitlab.{n}' for n in names} & set(sys.modules), set(names) <= set(dir(vitlab)))\n"
        "print([getattr(vitlab, n).__name__ for n in names])\n"
        "vitlab.nothing"
    )
    before, after = result.stdout.splitlines()
    assert (before, after) == ("set() True", str([f"vitlab.{name}" for name in names]))
    assert result.stderr.endswith("module 'vitlab' has no attribute 'nothing'\n")


@pytest.mark.full  # half a minute where mypy has looked at nothing before
def test_type_checkers_see_the_packages_of_vitlab_and_names_that_there_are_not(tmp_path):
    (tmp_path / "use.py").write_text(
        "import vitlab\nreveal_type(vitlab.figures.heat)\nvitlab.nothing\n"
    )
    command = [sys.executable, "-m", "mypy", str(tmp_path / "use.py")]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert "def (values: " in lines[0] and 'Module has no attribute "nothing"' in lines[1]
