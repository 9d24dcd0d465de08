import subprocess
import sys

import pytest


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_minivit_loads_nothing_heavier_than_torch_and_einops_and_works_where_vitlab_is_hidden():
    heavy = "{'torchvision', 'matplotlib', 'IPython', 'scipy', 'skimage', 'course', 'yaml', 'PIL', 'safetensors', 'sklearn'}"
    result = run(
        "import sys, torch; sys.modules['vitlab'] = None; before = [*sys.meta_path]; import minivit\n"
        f"print({heavy} & set(sys.modules), before == sys.meta_path)\n"
        "model = minivit.load('digits_vit')\n"
        "with minivit.record(model, 'blocks.*.attention.weights') as seen:\n"
        "    model(torch.zeros(2, 1, 8, 8))\n"
        "print(len(seen), minivit.remove(model, 'mlp').removed)"
    )
    assert result.stdout == "set() True\n4 (('mlp', None),)\n", result.stderr


USE = "import torch, torchvision.transforms.v2; print(torchvision.models.mobilenet_v3_small().eval()(torch.zeros(1, 3, 32, 32)).shape)"


@pytest.mark.parametrize("code", [
    f"from course import check\nimport torchvision\n{USE}",
    f"from minivit.import_torchvision import patch_torchvision_import\npatch_torchvision_import()\nimport timm, torchvision\n{USE}",
])  # fmt: skip
def test_torchvision_imports_whatever_build_of_torch_is_installed(code):
    result = run(code)
    assert "torch.Size([1, 1000])" in result.stdout, result.stderr


def test_a_torchvision_that_runs_by_itself_is_run_once(tmp_path):
    (tmp_path / "torchvision.py").write_text("print('run')")
    result = run(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from minivit import import_torchvision as one; one.patch_torchvision_import()\n"
        "import torchvision; print(one._declared)"
    )
    assert result.stdout == "run\n[]\n", result.stderr


def test_a_package_that_is_missing_is_one_sentence_with_what_installs_it():
    for missing, code, said in (
        ("matplotlib", "import vitlab; vitlab.figures", 'minivit: pip install ".[figures]"'),
        ("torchvision", "import minivit; minivit.load('vit_b_32')", "pip install torch==2."),
    ):  # fmt: skip
        result = run(f"import sys; sys.modules[{missing!r}] = None\n{code}")
        last = result.stderr.splitlines()[-1]
        assert last.startswith("ModuleNotFoundError: ") and said in last, result.stderr
        assert "+cpu" not in last
