"""Draws the book's figures again, to take, in ``_build/figures``: as SVG, and as PNG for print.

    python -m book.tools.figures [NOTEBOOK ...]        default: all chapters, and the recipes

Each file says its licence. ``make book`` puts them on the site; notebooks stay as they are.
"""

import base64
import io
from functools import partial
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from book.tools import notebooks
from book.tools.address import FIGURES, ROOT
from book.tools.mobile_layout import add_forms
from course.claims.cite import citation

KINDS = {"svg": "image/svg+xml", "png": "application/vnd.minivit.print"}
DPI = 300
RIGHTS = "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/"
STARTUP = "from book.tools import figures; figures.install()"


def install() -> None:
    add_forms({mime: partial(encode, kind=kind) for kind, mime in KINDS.items()})


def encode(figure: Figure, kind: str) -> str:
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


def draw(path: Path) -> None:
    """Executes a notebook, and writes the figures that have a name."""
    notebook = notebooks.read(path)
    notebooks.run(notebook, path.parent)
    FIGURES.mkdir(parents=True, exist_ok=True)
    for cell in filter(notebooks.figure_name, notebook.cells):
        for data in notebooks.display_data(cell):
            for kind in (kind for kind, mime in KINDS.items() if mime in data):
                file = FIGURES / f"{notebooks.figure_name(cell)}.{kind}"
                file.write_bytes(base64.b64decode(data[KINDS[kind]]))


def main() -> None:
    paths = notebooks.named_on_the_command_line(__doc__, sorted(ROOT.glob("book/*.ipynb")))
    with notebooks.kernels(STARTUP):
        for path in paths:
            draw(path)
            print(path.name, flush=True)


if __name__ == "__main__":
    main()
