"""What a page's Python lacks (threads, compilers, torchvision), chapters that need none do without."""

import os
import subprocess
import sys

from book.tools.notebooks import cells, tags
from course.claims.rows import BOOK

# As in Pyodide: no thread starts, no process forks, nothing is compiled, and no torchvision is there.
BLOCK = """\
import os, sys, threading

def refused(*_, **__):
    raise RuntimeError("there is none of this in a page")

threading.Thread.start = os.fork = refused
sys.modules["torchvision"] = None
os.environ["MPLBACKEND"] = "agg"
import torch
torch.compile = torch.set_num_threads = refused
"""


def run(code):
    command = [sys.executable, "-c", BLOCK + code]
    around = os.environ | {"PYTHONPATH": str(BOOK.parent)}
    return subprocess.run(command, capture_output=True, text=True, cwd=BOOK, env=around)


def test_packages_a_model_and_a_chapter_run_without_any_of_it():
    """The chapter runs up to the cell that compares with torchvision, without its sliders."""
    for code in ("threading.Thread(target=print).start()", "import torchvision"):
        assert run(code).returncode != 0, code
    code = (
        "import minivit\n"
        "from course import check\n"
        "from vitlab import figures, inversion, training\n"
        "model = minivit.load('digits_vit')\n"
        "with minivit.record(model, 'blocks.*.attention.weights') as seen, torch.no_grad():\n"
        "    model(torch.zeros(1, 1, 8, 8))\n"
        "print(len(seen))"
    )
    result = run(code)
    assert result.stdout.strip() == "4", result.stderr
    chapter = [
        cell.source
        for cell in cells(BOOK / "01_images_as_sequences.ipynb")
        if cell.cell_type == "code" and "nbval-ignore-output" not in tags(cell)
    ]
    end = next(i for i, text in enumerate(chapter) if "torchvision" in text)
    result = run("\n".join(chapter[:end]))
    assert end >= 8 and result.returncode == 0, result.stderr
