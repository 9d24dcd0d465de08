"""Draws the book's figures again, to take: as SVG, and as PNG for print.

    python -m book.tools.figures [NOTEBOOK ...]        default: all chapters, and the recipes

They lie in ``_build/figures``, under the names by which the book points to them, and each says in
its file what it is, under which licence, and how to cite it. ``make book`` puts them on the site.
Notebooks are executed as ``book.tools.execute`` does it and stay as they are.
"""

import argparse
import base64
import io
import os
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from matplotlib import rc_context
from matplotlib.figure import Figure
from nbclient import NotebookClient

from book.tools import notebooks
from book.tools.address import FIGURES, ROOT
from book.tools.execute import SECONDS
from book.tools.narrow import add_forms
from course.claims.cite import citation

KINDS = {"svg": "image/svg+xml", "png": "application/vnd.minivit.print"}
DPI = 300
RIGHTS = "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/"
STARTUP = "from book.tools import figures; figures.install()"  # in every kernel


def install() -> None:
    """Has this kernel show figures in these forms, too."""
    add_forms({mime: partial(drawn, kind=kind) for kind, mime in KINDS.items()})


def drawn(figure: Figure, kind: str) -> str:
    """A figure as a file in base64, which names the licence and the book."""
    title, author = citation()["title"], citation()["authors"][0]["name"]
    metadata = {
        "svg": {"Date": None, "Rights": RIGHTS, "Source": title, "Publisher": author},
        "png": {"Software": None, "Copyright": RIGHTS, "Source": title, "Author": author},
    }[kind]
    file = io.BytesIO()
    with rc_context({"svg.hashsalt": "minivit"}):  # equal figures give equal files
        figure.savefig(file, format=kind, dpi=DPI, bbox_inches="tight", metadata=metadata)
    return base64.b64encode(file.getvalue()).decode()


def draw(path: Path) -> list[Path]:
    """Executes a notebook, and writes the figures that have a name."""
    notebook = notebooks.read(path)
    resources = {"metadata": {"path": path.parent}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    FIGURES.mkdir(parents=True, exist_ok=True)
    written = []
    for cell in filter(notebooks.figure_name, notebook.cells):
        for data in notebooks.shown(cell):
            for kind in (kind for kind, mime in KINDS.items() if mime in data):
                written.append(FIGURES / f"{notebooks.figure_name(cell)}.{kind}")
                written[-1].write_bytes(base64.b64decode(data[KINDS[kind]]))
    return written


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", nargs="*", type=Path, default=sorted(ROOT.glob("book/*.ipynb")))
    os.environ["OMP_NUM_THREADS"] = "1"  # the kernels inherit it
    with TemporaryDirectory() as folder:
        os.environ |= {"IPYTHONDIR": folder, "PYTHONPATH": str(ROOT)}
        startup = Path(folder) / "profile_default/startup/figures.py"
        startup.parent.mkdir(parents=True)
        startup.write_text(STARTUP, encoding="utf-8")
        for path in parser.parse_args().notebook:
            print(f"{path.name}: {len(draw(path.resolve()))} files", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
