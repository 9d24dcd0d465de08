"""Writes the notebooks that students get to ``_build/handout``, with the packages, and as a zip.

    python -m book.tools.edition.handout [--chapters 1,2,4] [--site ADDRESS]

Each notebook works alone: its first line installs the packages, from the site that serves them, or
without an address from the folder ``wheels`` beside it. What students are not to read is looked for
in all of it; where it is found there is no zip.
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from book.tools import notebooks, wheels
from book.tools.address import ROOT, repository, site
from book.tools.edition.__main__ import arguments
from book.tools.edition.solution_scan import leaks
from book.tools.edition.tree import Edition, table, write
from book.tools.launch import alone

FOLDER = ROOT / "_build/handout"


def hand_out(edition: Edition, folder: Path) -> None:
    sources = folder.with_name(folder.name + "-sources")
    shutil.rmtree(sources, ignore_errors=True)
    write(edition, sources)
    left_out = table(edition)[1]
    folder.mkdir(parents=True)
    for path in sources.glob("book/*.ipynb"):
        if (page := f"book/{path.stem}") not in left_out:
            notebook = alone(notebooks.read(path), page, edition.site)
            for output in notebooks.outputs(notebook):
                output.get("metadata", {}).pop("narrow", None)  # the site's form for phones
            notebooks.write(folder / path.name, notebook)
    shutil.rmtree(sources)
    wheels.build(folder / "wheels")
    for drawings in ("drawings", "stills"):
        shutil.copytree(ROOT / "book/_static" / drawings, folder / "_static" / drawings)
    for name in ("CITATION.cff", "LICENSE", "LICENSE-text"):
        shutil.copy(ROOT / name, folder)
    shutil.copy(ROOT / "book/tools/edition/handout.md", folder / "README.md")
    groups = (ROOT / "requirements.txt").read_text(encoding="utf-8").split("\n\n")
    wanted = [group for group in groups if group.startswith(("# the package", "# the chapters"))]
    (folder / "requirements.txt").write_text("\n\n".join(wanted) + "\n", encoding="utf-8")


def problems(edition: Edition, folder: Path) -> list[str]:
    """Solutions and texts for teachers in what is handed out, in the packages, too."""
    with TemporaryDirectory() as packages:
        for name in wheels.NAMES:
            shutil.unpack_archive(folder / "wheels" / name, packages, "zip")
        left_out = table(edition)[1]
        return [*leaks(folder, left_out), *leaks(Path(packages), left_out)]


def main() -> int:
    edition = arguments()._replace(student=True)
    if not edition.site and (url := repository()):
        edition = edition._replace(site=site(url))
    archive = FOLDER.with_suffix(".zip")
    shutil.rmtree(FOLDER, ignore_errors=True)
    archive.unlink(missing_ok=True)
    hand_out(edition, FOLDER)
    if lines := problems(edition, FOLDER):
        print("\n".join(lines))
        return 1
    shutil.make_archive(str(FOLDER), "zip", FOLDER.parent, FOLDER.name)
    print(f"{FOLDER}\n{archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
