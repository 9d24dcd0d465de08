"""What the pages say of where they are published, all of it from the repository's address.

Without an address there are no launch buttons, no link to a repository and no canonical addresses.
"""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

from book.tools.address import BRANCH, filled, repository, site

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
    url = repository()
    if url:
        app.tags.add("published")  # for what is true only then: {only} published
        config.html_baseurl = site(url)
        config.html_theme_options |= BUTTONS | {"repository_url": url}


def write_what_is_no_page(app: Sphinx, error: Exception | None) -> None:
    """The list of pages for search engines, and the address in notebooks that are downloaded."""
    if error is not None or app.builder.format != "html":
        return
    out, base = Path(app.outdir), app.config.html_baseurl
    url = (
        repository()
    )  # the theme's option is Jupyter Book's own where there is none
    for notebook in out.glob("_sources/**/*.ipynb") if url else ():
        notebook.write_bytes(filled(notebook.read_bytes(), url))
    texts = {"robots.txt": "", "sitemap.xml": ""}
    if base:
        pages = sorted(
            base + app.builder.get_target_uri(name) for name in app.env.found_docs
        )
        entries = "".join(f"<url><loc>{page}</loc></url>\n" for page in pages)
        texts["robots.txt"] = (
            f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n"
        )
        texts["sitemap.xml"] = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'
        )
    for name, text in texts.items():
        if text:
            (out / name).write_text(text, encoding="utf-8")
        else:  # of a build that had an address
            (out / name).unlink(missing_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("config-inited", tell_the_theme)
    app.connect("build-finished", write_what_is_no_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
