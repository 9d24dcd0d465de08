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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from IPython.core.formatters import BaseFormatter
from IPython.core.getipython import get_ipython
from matplotlib import rc_context
from matplotlib.figure import Figure
from nbclient import NotebookClient
from traitlets import Unicode

from book.tools.address import ROOT
from book.tools.execute import SECONDS
from course.claims.cite import citation

FOLDER = ROOT / "_build/figures"
KINDS = {"svg": "image/svg+xml", "png": "application/vnd.minivit.print"}
DPI = 300
STARTUP = "from book.tools import figures; figures.install()"  # in every kernel


class Again(BaseFormatter):
    """What IPython asks for another form of a figure, as base64."""

    format_type = Unicode()

    def __init__(self, kind: str):
        super().__init__(format_type=KINDS[kind])
        self.kind = kind

    def __call__(self, shown: Any) -> str | None:
        """For any object: Matplotlib takes its figures out of a formatter's list of types."""
        return drawn(shown, self.kind) if isinstance(shown, Figure) else None


def install() -> None:
    """Adds the forms to those that this kernel shows."""
    formatters = get_ipython().display_formatter.formatters
    formatters |= {mime: Again(kind) for kind, mime in KINDS.items()}


def drawn(figure: Figure, kind: str) -> str:
    """A figure as a file in base64, which names the licence and the book."""
    said = citation()
    rights = "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/"
    about: dict[str, Any] = {
        "svg": {"Date": None, "Rights": rights, "Source": said["title"],
                "Publisher": said["authors"][0]["name"]},
        "png": {"Software": None, "Copyright": rights, "Source": said["title"],
                "Author": said["authors"][0]["name"]},
    }[kind]  # fmt: skip
    file = io.BytesIO()
    with rc_context({"svg.hashsalt": "minivit"}):  # equal figures give equal files
        figure.savefig(file, format=kind, dpi=DPI, bbox_inches="tight", metadata=about)
    return base64.b64encode(file.getvalue()).decode()


def draw(path: Path) -> list[Path]:
    """Executes a notebook, and writes the figures that have a name."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": path.parent}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = []
    for cell in notebook.cells:
        name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        for output in cell.get("outputs", []) if name else []:
            for kind, mime in KINDS.items():
                if mime in output.get("data", {}):
                    written.append(FOLDER / f"{name}.{kind}")
                    written[-1].write_bytes(base64.b64decode(output.data[mime]))
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
