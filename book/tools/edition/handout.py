"""Writes the notebooks that students get to ``_build/handout``, with the packages, and as a zip.

    python -m book.tools.edition.handout [--chapters 1,2,4]

What students are not to read is looked for in all of it; where it is found there is no zip.
"""

import shutil
import sys
from pathlib import Path

from book.tools import notebooks
from book.tools.address import ROOT
from book.tools.edition.__main__ import arguments
from book.tools.edition.solution_scan import leaks
from book.tools.edition.tree import Edition, table, write

FOLDER = ROOT / "_build/handout"
# What notebooks need of an edition's sources.
KEPT = ("CITATION.cff", "LICENSE", "LICENSE-text", "course", "minivit", "studies", "vitlab")
IN_BOOK = ("*.ipynb", "_static/drawings", "claims.yml", "machines.json", "results")


def requirements() -> str:
    groups = (ROOT / "requirements.txt").read_text(encoding="utf-8").split("\n\n")
    wanted = (group for group in groups if group.startswith(("# the package", "# the chapters")))
    return "\n\n".join(wanted) + "\n"


def hand_out(edition: Edition, folder: Path) -> None:
    edition = edition._replace(student=True)
    sources = folder.with_name(folder.name + "-sources")
    shutil.rmtree(sources, ignore_errors=True)
    write(edition, sources)
    left_out = table(edition)[1]
    (folder / "book/_static").mkdir(parents=True)
    for name in KEPT:
        shutil.move(sources / name, folder / name)
    for path in [path for pattern in IN_BOOK for path in sources.glob(f"book/{pattern}")]:
        if f"book/{path.stem}" not in left_out:
            shutil.move(path, folder / path.relative_to(sources))
    shutil.rmtree(sources)
    for path in folder.glob("book/*.ipynb"):
        notebook = notebooks.read(path)
        for output in notebooks.outputs(notebook):
            output.get("metadata", {}).pop("narrow", None)  # the site's form for phones
        notebooks.write(path, notebook)
    shutil.copy(ROOT / "book/tools/edition/handout.md", folder / "README.md")
    (folder / "requirements.txt").write_text(requirements(), encoding="utf-8")


def main() -> int:
    edition = arguments()._replace(student=True)
    archive = FOLDER.with_suffix(".zip")
    shutil.rmtree(FOLDER, ignore_errors=True)
    archive.unlink(missing_ok=True)
    hand_out(edition, FOLDER)
    if problems := leaks(FOLDER, table(edition)[1]):
        print("\n".join(problems))
        return 1
    shutil.make_archive(str(FOLDER), "zip", FOLDER.parent, FOLDER.name)
    print(f"{FOLDER}\n{archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
