"""What the pages say of where they are published, from the repository's address if it has one."""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

from book._ext.pages import when_built
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
    if url := repository():
        app.tags.add("published")  # for what is true only then: {only} published
        config.html_baseurl = site(url)
        config.html_theme_options |= BUTTONS | {"repository_url": url}


def fill_notebooks(app: Sphinx) -> None:
    """Writes the address into the notebooks that are downloaded."""
    if url := repository():  # the theme's option is Jupyter Book's own where there is none
        for notebook in Path(app.outdir).glob("_sources/**/*.ipynb"):
            notebook.write_bytes(filled(notebook.read_bytes(), url))


def setup(app: Sphinx) -> None:
    app.connect("config-inited", tell_the_theme)
    when_built(app, fill_notebooks)
