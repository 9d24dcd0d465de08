"""Builds a book for students, or of some chapters, in ``_build/edition/_build/html``.

    python -m book.tools.edition [--student] [--chapters 1,2,4,14] [--whole ADDRESS]

Chapters keep their numbers, and the ledger all its claims. What students are not to read is looked
for in all that was built, and ends it if found.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from book.tools.address import ROOT
from book.tools.edition import contents
from book.tools.edition.solution_scan import leaks
from book.tools.edition.tree import Edition, load, table, write


def arguments(given: list[str] | None = None) -> Edition:
    """The edition that the command line names; ends with one line where it names none."""
    parser = argparse.ArgumentParser(prog="book.tools.edition", description=__doc__.splitlines()[0])
    parser.add_argument("--student", action="store_true", help="without solutions")
    parser.add_argument("--chapters", metavar="1,2,4", help="of these chapters alone")
    parser.add_argument("--whole", default="", help="address of the whole book, to link to")
    parser.add_argument("--site", default="", help="address of the site that serves the packages")
    options, chapters = parser.parse_args(given), None
    if options.chapters is not None:
        try:
            chapters = contents.chosen(options.chapters, load("_toc.yml"))
        except ValueError as error:
            parser.exit(2, f"{error}\n")
    site = options.site and f"{options.site.rstrip('/')}/"
    return Edition(options.student, chapters, options.whole, site)


def build(edition: Edition, folder: Path) -> int:
    # An edition for students has no launch buttons, which would open the whole book.
    address = {"MINIVIT_REPOSITORY": ""} if edition.student else {}
    own = {"PYTHONPATH": str(folder)}  # before the repository, whose packages are installed
    program = Path(sys.executable).with_name("jupyter-book")
    command = [program, "build", ".", "-W", "-n", "--keep-going"]
    return subprocess.run(command, cwd=folder, env=os.environ | address | own).returncode


def main() -> int:
    edition = arguments()
    folder = ROOT / "_build/edition"
    shutil.rmtree(folder, ignore_errors=True)  # no page of another edition may stay
    write(edition, folder)
    if edition.chapters is not None:
        missing = contents.missing(load("book/chapters.yml"), edition.chapters)
        for chapter, needs in missing.items():
            print(f"chapter {chapter} builds on {', '.join(map(str, needs))}, left out here")
    if failed := build(edition, folder):
        return failed
    site = folder / "_build/html"
    problems = leaks(site, table(edition)[1]) if edition.student else []
    print("\n".join([*problems, f"The pages: {site}/index.html"]))
    return min(len(problems), 1)


if __name__ == "__main__":
    sys.exit(main())
