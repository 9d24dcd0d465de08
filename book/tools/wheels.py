"""Builds the two packages that a notebook needs which is opened alone, for the site to serve.

python -m book.tools.wheels [FOLDER]        default: _build/html/wheels
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from book.tools.address import ROOT, SITE

TEXT = (ROOT / "minivit/__init__.py").read_text(encoding="utf-8")  # to import it would need torch
(VERSION,) = re.findall('^__version__ = "(.+)"$', TEXT, re.MULTILINE)
NAMES = [f"{name}-{VERSION}-py3-none-any.whl" for name in ("minivit", "minivit_course")]


def build(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", folder]
    for source in (".", "course"):
        command = [sys.executable, "-m", "pip", "wheel", f"./{source}", *options]
        subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    build(Path(sys.argv[1] if sys.argv[1:] else SITE / "wheels").resolve())
