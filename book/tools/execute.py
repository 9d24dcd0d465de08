"""Re-executes notebooks in place, so that equal results give an empty diff.

    python -m book.tools.execute [NOTEBOOK ...]        default: all chapters and solutions

Each runs in a fresh kernel from its own folder, with one thread, as many at a time as there are
cores. What changes from run to run is not stored: digits that may move (``outputs.py``), last
digits of figures behind an equal verdict, images that look like those stored, outputs of cells
tagged ``nbval-ignore-output``. A notebook is written only when it ran through.
"""

import base64
import io
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbclient.exceptions import CellExecutionError
from PIL import Image

from book.tools import notebooks
from book.tools.address import ROOT
from book.tools.mobile_layout import MIME
from book.tools.outputs import changes, of_verdict
from minivit.files import atomic_write

LEVELS = 8  # of 255
STARTUP = "from book.tools import mobile_layout; mobile_layout.install()"
WEBP = re.compile("(?<=data:image/webp;base64,)[A-Za-z0-9+/=\n]+")


def clean(notebook: nbformat.NotebookNode) -> None:
    """Takes out of an executed notebook what differs from run to run."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if "nbval-ignore-output" in notebooks.tags(cell):
            cell.outputs = []
    for output in notebooks.outputs(notebook):
        if MIME in output.get("data", {}):  # not for Jupyter: the site's, for phones
            output.metadata["narrow"] = output.data.pop(MIME)


def alike(one: str, other: str) -> bool:
    """Whether two base64 images look the same: no 4 x 4 dots differ by ``LEVELS`` in their mean."""
    a, b = (Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB") for text in (one, other))
    if a.size != b.size:
        return False
    difference = np.subtract(*(np.asarray(image.reduce(4), dtype=float) for image in (a, b)))
    return abs(difference).max() < LEVELS


def agrees(kind: str, stored: Any, new: Any, strict: bool) -> bool:
    """Whether a new output agrees with that stored, and its images look the same."""
    if kind == "image/png":
        return alike(stored, new)
    images = WEBP.findall(str(stored)), WEBP.findall(str(new))
    return not changes(stored, new, strict) and all(map(alike, *images))


def keep_stored(old: nbformat.NotebookNode, new: nbformat.NotebookNode) -> None:
    """Puts back what is stored where a new output agrees with it, and figures' last digits."""
    for before, after in zip(old.cells, new.cells, strict=True):
        for was, now in zip(before.get("outputs", []), after.get("outputs", []), strict=False):
            stream = "text" in was and was.get("name") == now.get("name")
            if stream and agrees("stream", was["text"], now["text"], False):
                now["text"] = was["text"]
            a, b = was.get("data", {}), now.get("data", {})
            for kind in a.keys() & b.keys():
                if agrees(kind, a[kind], b[kind], of_verdict(was) or of_verdict(now)):
                    b[kind] = a[kind]
            narrow = [output.get("metadata", {}).get("narrow") for output in (was, now)]
            if a and a == b and (not any(narrow) or all(narrow) and alike(*narrow)):
                now["metadata"] = was["metadata"]


def execute(path: Path) -> bool:
    """Runs one notebook and stores it; says whether the file changed."""
    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    notebooks.run(notebook, path.parent)
    clean(notebook)
    keep_stored(nbformat.reads(before, as_version=4), notebook)
    nbformat.validate(notebook)
    after = nbformat.writes(notebook) + "\n"
    if after != before:
        with atomic_write(path) as scratch:
            scratch.write_text(after, encoding="utf-8")
    return after != before


if __name__ == "__main__":
    paths, failed = notebooks.named_on_the_command_line(__doc__, notebooks.of_the_book()), False
    with notebooks.kernels(STARTUP), ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, job in [(path, pool.submit(execute, path)) for path in paths]:
            name = path.relative_to(ROOT)
            try:
                print(f"{name}: {'changed' if job.result() else 'unchanged'}")
            except CellExecutionError as error:
                failed = True
                plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
                print(f"{name}: failed, left as it was\n{plain}")
    sys.exit(failed)
