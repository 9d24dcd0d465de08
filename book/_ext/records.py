"""Records for machines: in the heads of chapters and of the first page, and of the data in files.

The directive ``from-ledger`` prints the ledger by a template, ``paper`` a draft as journals do.
"""

from mimetypes import guess_type
from pathlib import Path
from typing import Any

import pypandoc
from rocrate.model import ContextEntity, File
from rocrate.rocrate import ROCrate
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book._ext import forrt
from book._ext.chapters import length, load_map, names, notebook
from book._ext.claims import note_dependencies, verdicts
from book._ext.ledger import build
from book._ext.ledger_page import page_of, paper_of
from book._ext.pages import from_template, html, when_built
from book.tools.address import repository
from course.claims import export
from course.claims.cite import Build, address, citation
from course.claims.rows import load

LICENSE = "https://creativecommons.org/licenses/by/4.0/"
TERMS = {
    "@type": "CreativeWork",
    "name": "Creative Commons Attribution 4.0 International",
    "description": "Share and adapt it for any purpose, with credit and word of what was changed.",
}
FILES = {  # of the ledger, beside its page
    "ledger.json": "Every claim with its paper, rule, values and verdict.",
    "ledger.csv": "The same as a table.",
    "ledger.bib": "A BibTeX entry for each claim.",
    "ledger.schema.json": "What the fields of ledger.json are.",
}


def describe(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Adds the record of a chapter, or on the first page of the book."""
    here, name = build(app), page.removeprefix("book/")
    numbers = {name: number for number, name in names().items()}
    values = {"book": citation(), "build": here, "rows": load(), "parts": load_map()["parts"]}
    values |= {"url": here.site + app.builder.get_target_uri(page), "address": address}
    if name in numbers:
        values |= {"name": name, "number": numbers[name], "minutes": length(notebook(name))}
        values["title"] = load().chapters.get(name, context["title"])
    elif page != app.config.root_doc:
        return
    context["metatags"] = context.get("metatags", "") + from_template("page_head.html", **values)


def crate(data: dict[str, Any], here: Build, out: Path) -> ROCrate:
    """The ledger and what it rests on, an RO-Crate; a study is the action that gave its results."""
    made, book = ROCrate(), citation()
    made.name, made.description, made.keywords = book["title"], book["abstract"], book["keywords"]
    made.license = made.add(ContextEntity(made, LICENSE, TERMS))
    made.datePublished = here.date or made.datePublished
    where = {"url": repository()} if repository() else {}
    by = {"@type": "Organization", "name": ", ".join(each["name"] for each in book["authors"])}
    made.creator = made.publisher = made.add(ContextEntity(made, "#authors", by | where))
    code = {"@type": "SoftwareApplication", "name": "minivit", "version": book["version"]}
    code |= {"url": repository() or "book/command.html"}
    program, actions = made.add(ContextEntity(made, "#code", code)), []

    def file(path: str, description: str) -> File:
        about = {"name": Path(path).name, "description": description}
        about |= {"encodingFormat": guess_type(path)[0] or "text/plain"}
        about |= {"contentSize": str((out / path).stat().st_size)}
        return made.add_file(dest_path=path, properties=about)

    for name, description in FILES.items():
        file(f"book/{name}", description)
    for study in {s["name"]: s for claim in data["claims"] for s in claim["studies"]}.values():
        said = f"On {study['machine']}, at commit {study['commit']}."
        ran = {"name": study["command"], "endTime": study["date"], "description": said}
        gave = file(f"_static/results/{study['name']}.json", f"What {study['command']} found.")
        actions += [made.add_action(program, f"#study-{study['name']}", None, gave, ran)]
    made.root_dataset["mentions"] = actions
    return made


def write(app: Sphinx) -> None:
    """Writes the crate and, where the site has an address to refer to, FORRT's chains."""
    here, out = build(app), Path(app.outdir)
    data = export.ledger(verdicts(), here)
    crate(data, here, out).metadata.write(out)
    for row in filter(forrt.has_chain, data["claims"] if here.site else []):
        (folder := out / page_of(row["id"])).mkdir(exist_ok=True)
        paper = paper_of(load().claims[row["id"]])
        for number, (step, text) in enumerate(forrt.chain(row, paper, here, repository()), 2):
            (folder / f"{number}_{step}.trig").write_text(text, encoding="utf-8")


class Printed(SphinxDirective):
    """A template with the ledger in its places, of one paper where named; or a manuscript."""

    required_arguments, optional_arguments = 1, 1

    def run(self):
        note_dependencies(self.env)
        file, *paper = self.arguments
        if self.name == "paper":
            path = Path(self.env.relfn2path(file)[1])
            self.env.note_dependency(str(path))
            options = ["--citeproc", "--shift-heading-level-by=1", f"--resource-path={path.parent}"]
            text = pypandoc.convert_file(path, "html", "markdown", extra_args=options)
            return [html(text.replace('class="citation"', ""))]  # of which the theme makes blocks
        data = export.ledger(verdicts(), build(self.env.app))
        rows = [row for row in data["claims"] if not paper or row["of"].get("paper") == paper[0]]
        values = {"data": data, "rows": rows, "fields": export.FIELDS, "systems": load().systems}
        return [html(from_template(f"{file}.html", **values | vars(forrt)))]


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", describe)
    for name in ("from-ledger", "paper"):
        app.add_directive(name, Printed)
    when_built(app, write, priority=600)  # after what it lists
