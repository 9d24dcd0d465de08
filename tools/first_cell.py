"""The first cell of every notebook: makes ``minivit`` and ``course`` importable wherever it runs.

The repository's address and tag stand in ``_config.yml`` alone; this writes them into the cell,
because a notebook opened in Colab arrives on its own.
"""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent

CELL = """\
# Makes minivit and course importable; in Colab it fetches the book first.
import os
import subprocess
import sys
from pathlib import Path

above = [Path.cwd(), *Path.cwd().parents]
root = next((path for path in above if (path / "course/claims").is_dir()), None)
if root is None:
    url, tag = "{url}", "{tag}"
    root = Path(url).name
    if not Path(root).is_dir():
        clone = ["git", "clone", "--quiet", "--depth", "1", "--branch", tag]
        subprocess.run([*clone, url, root], check=True)
    root = Path(root).resolve()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "einops"]
    subprocess.run(install, check=True)
    os.chdir(root / "{folder}")
sys.path.insert(0, str(root))"""


def repository() -> tuple[str, str]:
    """Address and release tag of the repository, from ``_config.yml``."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return config["repository"]["url"], config["repository"]["branch"]


def first_cell(notebook: Path) -> str:
    """The source of a notebook's first cell."""
    url, tag = repository()
    folder = notebook.resolve().parent.relative_to(ROOT)
    return CELL.format(url=url, tag=tag, folder=folder)
