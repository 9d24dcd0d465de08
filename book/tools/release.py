"""Checks what is about to be released: the files in ``dist``, each in an environment of its own.

python -m book.tools.release PROJECT TAG
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from book.tools.address import ROOT

CODE = "import minivit; minivit.load('digits_vit')"


def wanted(project: str, tag: str) -> list[str]:
    """The names of a release's files."""
    stem = f"{project.lower().replace('-', '_')}-{tag.removeprefix('v')}"
    return [f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"]


def check(file: Path) -> None:
    """Installs a file into a fresh environment, and loads a model there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", file], check=True)
        subprocess.run([python, "-P", "-c", CODE], cwd=folder, check=True)


def main(project: str, tag: str) -> None:
    files = sorted((ROOT / "dist").iterdir())
    names = [file.name for file in files]
    if names != wanted(project, tag):
        raise SystemExit(f"dist should hold {wanted(project, tag)} alone: it holds {names}")
    for file in files:
        check(file)
        print(f"{file.name}: installs and loads a model")


if __name__ == "__main__":
    main(*sys.argv[1:])
