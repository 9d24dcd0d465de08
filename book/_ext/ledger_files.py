"""What the site has beside the ledger page: its data, stored results, and thumbnails."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx

from book._ext.thumbnails import thumbnails
from book.tools.address import git
from course.claims import export
from course.claims.cite import Build, bibtex
from course.claims.ledger import harvest
from course.claims.rows import load
from course.results import RESULTS


@cache
def commit() -> tuple[str, str]:
    """The commit that is built, with a + where files were changed, and its day."""
    try:
        name, day = (
            git("log", "-1", "--format=%h %cs", "--abbrev=12").decode().split()
        )
        changed = git("status", "--porcelain", "--untracked-files=no").strip()
    except (OSError, subprocess.CalledProcessError):
        return "", ""
    return name + "+" * bool(changed), day


def build(app: Sphinx) -> Build:
    """What is built here."""
    return Build(*commit(), site=app.config.html_baseurl)


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes the files; Sphinx calls this at the end."""
    if error is not None or app.builder.format != "html":
        return
    out, here = Path(app.outdir), build(app)
    data = export.ledger(harvest(), here)
    book = out / "book"
    texts = {
        "ledger.json": json.dumps(data, ensure_ascii=False, indent=1) + "\n",
        "ledger.csv": export.table(data),
        "ledger.bib": "\n".join(bibtex(claim, here) for claim in data["claims"]),
        "ledger.schema.json": export.SCHEMA.read_text(encoding="utf-8"),
    }
    for name, text in texts.items():
        (book / name).write_text(text, encoding="utf-8")
    results, small = out / "_static/results", out / "_static/thumbs"
    for folder in (results, small):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for name in {name for claim in load().claims.values() for name in claim.study}:
        shutil.copy(RESULTS / f"{name}.json", results)
    for picture in thumbnails().values():
        (small / picture.file).write_bytes(picture.webp)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
