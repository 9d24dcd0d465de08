"""What a page's Python lacks (threads, compilers, torchvision), chapters that need none do without."""

import subprocess
import sys

import pytest

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
    return subprocess.run(command, capture_output=True, text=True, cwd=BOOK)


def code_of(chapter):
    """A chapter's code, without what needs a kernel: its sliders."""
    (path,) = BOOK.glob(f"{chapter:02}_*.ipynb")
    return [
        cell.source
        for cell in cells(path)
        if cell.cell_type == "code" and "nbval-ignore-output" not in tags(cell)
    ]


def test_the_block_holds_and_packages_and_a_model_run_without_any_of_it():
    blocked = "threading.Thread(target=print).start()", "os.fork()"
    for code in (*blocked, "import torchvision", "torch.compile(print)"):
        assert run(code).returncode != 0, code
    code = (
        "sys.path.insert(0, '..')\n"
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


@pytest.mark.parametrize(
    "chapter", [1, *(pytest.param(n, marks=pytest.mark.full) for n in (19, 20))]
)
def test_a_chapter_runs_without_any_of_it_up_to_a_cell_that_compares_with_torchvision(chapter):
    code = code_of(chapter)
    needed = [i for i, text in enumerate(code) if "torchvision" in text]
    assert needed[0] >= 8 if chapter == 1 else not needed
    result = run("\n".join(code[: needed[0]] if needed else code))
    assert result.returncode == 0, result.stderr
