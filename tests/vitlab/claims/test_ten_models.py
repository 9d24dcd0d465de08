"""The notebook that audits ten pretrained models: here random weights lie in the libraries' caches."""

import os
import subprocess
import sys

import nbformat
import numpy as np
import pytest
import timm
from PIL import Image
from safetensors.torch import save_file

from book.tools.address import ROOT
from tests.parity import draw
from vitlab.claims.ledger import read

NOTEBOOK = ROOT / "book/ledger/ten_models.ipynb"
NAMES = ["vit_tiny_patch16_224.augreg_in21k_ft_in1k", "mobilenetv3_small_050.lamb_in1k"]


@pytest.fixture
def caches(tmp_path):
    """Weights drawn at random where the libraries look for those that were fetched."""
    for name in NAMES:
        hub = tmp_path / "hub" / f"models--timm--{name}"
        (hub / "snapshots/0").mkdir(parents=True)
        (hub / "refs").mkdir()
        (hub / "refs/main").write_text("0")
        model = draw(timm.create_model(name.partition(".")[0]))
        save_file(model.state_dict(), hub / "snapshots/0/model.safetensors")
    for index in (0, 1, 134, 999):  # 134 is one of two cranes
        folder = tmp_path / "work/imagenetv2-matched-frequency-format-val" / str(index)
        folder.mkdir(parents=True)
        pixels = np.random.default_rng(index).integers(0, 256, (40, 50, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "a.jpeg")
    return tmp_path


@pytest.mark.full
def test_it_writes_the_files_that_the_ledger_takes(caches):
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    names = [f"timm:{name}" for name in NAMES]
    start, end = code.index("MODELS = ["), code.index("COUNT = 256")
    code = f"{code[:start]}MODELS = {names}\nBESIDE = {{}}\n{code[end:]}"
    code = code.replace('CLAIMS = ""', 'CLAIMS = "V28,H04"').replace("COUNT = 256", "COUNT = 4")
    (caches / "work/notebook.py").write_text(code)
    around = {"HF_HOME": str(caches), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    how = {"cwd": caches / "work", "env": os.environ | around, "capture_output": True, "text": True}
    ran = subprocess.run([sys.executable, "notebook.py"], **how)
    assert ran.returncode == 0, ran.stderr
    assert "4 images" in ran.stdout and "on " in ran.stdout
    ours, theirs = (read(caches / f"work/ledger_models/timm_{name}.json") for name in NAMES)
    assert [one["model"]["name"] for one in (ours, theirs)] == names
    assert ours["images"]["labels"] and len(list((caches / "work/images").rglob("*.jpeg"))) == 6
    assert [row["state"] for row in ours["claims"]] == ["measured", "cannot be asked"]
    assert [row["state"] for row in theirs["claims"]] == ["cannot be asked", "measured"]
