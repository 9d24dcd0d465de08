"""The first cell of every notebook: makes ``minivit`` and ``course`` importable wherever it runs.

python -m book.tools.first_cell        writes it into the notebooks, and executes nothing
"""

from pathlib import Path

from book.tools.address import BRANCH, ROOT
from book.tools.notebooks import read, write

CELL = """\
# Makes minivit and course importable; a notebook that is alone fetches the book.
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

above = [Path.cwd(), *Path.cwd().parents]
here = (path for path in above if (path / "course/claims").is_dir())
root = next(here, None)
if root is None:
    url = ""  # filled in on the branch that Binder and Colab open

    class NotHere(Exception):
        def _render_traceback_(self):  # a sentence, no traceback
            return [str(self)]

    def run(*command):
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            said = f"The book must be fetched, and `{{' '.join(command)}}` failed."
            raise NotHere(said) from None

    if not url:
        raise NotHere(
            "This notebook needs the book around it: open it in a clone."
        )
    root = Path(url.rpartition("/")[2]).resolve()
    if not root.is_dir():
        options = ["--quiet", "--depth", "1", "--branch", "{branch}"]
        run("git", "clone", *options, url)
    for name in ["einops", "jaxtyping", "safetensors"]:
        if find_spec(name) is None:
            pip = [sys.executable, "-m", "pip", "install", "--quiet"]
            run(*pip, name)
    os.chdir(root / "{folder}")
sys.path.insert(0, str(root))"""


def notebooks() -> list[Path]:
    """The chapters and solutions, and what else the site shows as a notebook."""
    return sorted([*ROOT.glob("book/*.ipynb"), *ROOT.glob("book/solutions/*.ipynb")])


def first_cell(notebook: Path) -> str:
    folder = notebook.resolve().parent.relative_to(ROOT).as_posix()
    return CELL.format(branch=BRANCH, folder=folder)


def main() -> None:
    for path in notebooks():
        notebook = read(path)
        notebook.cells[0].source = first_cell(path)
        write(path, notebook)


if __name__ == "__main__":
    main()
