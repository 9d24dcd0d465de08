"""What the pages say of where they are published, from the repository's address if it has one."""

from pathlib import Path
from urllib.parse import quote, urlencode

from sphinx.application import Sphinx
from sphinx.config import Config

from book._ext.ledger_page import page_of
from book._ext.pages import from_template, when_built
from book.tools import notebooks
from book.tools.address import ROOT, repository, site
from book.tools.launch import BRANCH, ENVIRONMENT, alone
from course.claims.cite import citation
from course.claims.rows import load

TAKEN = ROOT / "_build/beside"
FED = 60  # changes in the feed
BUTTONS = {
    "use_repository_button": True,
    "use_issues_button": True,
    "repository_branch": BRANCH,
    "launch_buttons": {
        "notebook_interface": "jupyterlab",
        "binderhub_url": "https://mybinder.org",
        "colab_url": "https://colab.research.google.com",
    },
}


def tell_the_theme(app: Sphinx, config: Config) -> None:
    """Gives Sphinx and its theme the address, where there is one."""
    if TAKEN.exists():  # made by take.sh and large_model.py, put beside the pages
        config.html_extra_path.append(str(TAKEN))
    for path in [*TAKEN.glob("_static/take/*"), *TAKEN.glob("_static/large")]:
        app.tags.add(path.name.rpartition(".")[2])  # {only} pdf, epub, zip, slides, large
    if url := repository():
        app.tags.add("published")  # for what is true only then: {only} published
        config.html_baseurl = site(url)
        config.html_theme_options |= BUTTONS | {"repository_url": url}


def write_what_is_no_page(app: Sphinx) -> None:
    """Lists of pages, for search engines, and of changed verdicts; notebooks that work alone."""
    out, base = Path(app.outdir), app.config.html_baseurl
    sources = out / "_sources"
    for path in sources.rglob("*.ipynb"):
        page = path.relative_to(sources).with_suffix("").as_posix()
        notebook = notebooks.read(path)
        for cell in notebook.cells:  # what it gave is on its page, as images that load faster
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        notebooks.write(path, alone(notebook, page, base) if base else notebook)
    if not base:
        for name in ("robots.txt", "sitemap.xml", "feed.xml"):  # of a build that had an address
            (out / name).unlink(missing_ok=True)
        return
    names = [*app.env.found_docs, *map(page_of, load().claims)]
    pages = sorted(base + app.builder.get_target_uri(name) for name in names)
    robots = f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n"
    (out / "robots.txt").write_text(robots, encoding="utf-8")
    changes = [
        (each, row, f"{base}{page_of(row.id)}.html")
        for row in load().claims.values()
        for each in row.amended
    ]
    last = sorted(changes, key=lambda change: change[0].when, reverse=True)[:FED]
    values = {"base": base, "pages": pages, "changes": last, "authors": citation()["authors"]}
    for name in ("sitemap.xml", "feed.xml"):
        (out / name).write_text(from_template(name, **values), encoding="utf-8")


def open_main_in_binder(
    app: Sphinx, page: str, template: str, context: dict, doctree: object
) -> None:
    """Leads Binder, which has the packages, to the repository's notebooks, fetched into `book`."""
    at = {"repo": repository(), "branch": "main", "targetPath": "book", "depth": "1"}
    pull = f"git-pull?{urlencode(at | {'urlpath': f'lab/tree/book/{page}.ipynb'})}"
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if "mybinder.org" in button.get("url", ""):
                start = button["url"].partition(f"/{BRANCH}?")[0]
                button["url"] = f"{start}/{ENVIRONMENT}?urlpath={quote(pull, safe='')}"


def setup(app: Sphinx) -> None:
    app.connect("config-inited", tell_the_theme)
    app.connect("html-page-context", open_main_in_binder, priority=900)  # after the theme's
    when_built(app, write_what_is_no_page)
