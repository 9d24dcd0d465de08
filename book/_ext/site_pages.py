"""What the pages need beyond Jupyter Book: chapter numbers, and text that browsers set well."""

import re

from docutils.nodes import document, reference
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector


def number_chapters(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Gives a numbered chapter the number of its file: ``02_attention`` is chapter 2.

    Sphinx counts by position, so that a chapter would change its number whenever one is written
    before it. Figures and equations bear the chapter's number, and are numbered again.

    Raises:
        ValueError: The file of a numbered chapter is not called ``NN_name``.
    """
    for docname, numbers in env.toc_secnumbers.items():
        match = re.match(r"(\d+)_", docname.rpartition("/")[2])
        if match is None:
            raise ValueError(
                f"a numbered chapter's file is called NN_name: got {docname}"
            )
        chapter = [int(match[1])]
        numbers[""] = tuple(chapter)  # the heading on the page
        env.titles[docname]["secnumber"] = (
            chapter  # links to the next page and the previous one
        )
        next(env.tocs[docname].findall(reference))["secnumber"] = (
            chapter  # the sidebar
        )
    TocTreeCollector().assign_figure_numbers(env)
    return list(env.toc_secnumbers)


MATH = re.compile(r'\(?<span class="math[^>]*>[^<]*</span>[,.;:?!)]+')
CAPTION = re.compile(r"<figcaption>.*?</figcaption>", re.DOTALL)
SIDE = re.compile(
    r"\b(?:Left|Right)\b(?! of\b)|(?<=\()(?:left|right)(?=\))|(?<=; )right(?=,)"
)
BELOW = {"Left": "Top", "Right": "Bottom", "left": "top", "right": "bottom"}


def set_text(
    app: Sphinx, page: str, template: str, context: dict, doctree: document | None
) -> None:
    """Changes what browsers would set badly, or do not know.

    docutils gives entries of the bibliography the role ``doc-biblioentry``, which may not stand in
    a list and which DPUB-ARIA 1.1 has withdrawn in favour of ``listitem``.
    """
    if "body" in context:
        body = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')
        body = MATH.sub(r'<span class="together">\g<0></span>', body)
        context["body"] = CAPTION.sub(
            lambda caption: SIDE.sub(both_sides, caption[0]), body
        )


def both_sides(word: re.Match) -> str:
    """Where a panel stands, for wide screens and for phones, where panels may be stacked."""
    return (
        f'<span class="beside">{word[0]}</span>'
        f'<span class="stacked">{BELOW[word[0]]}</span>'
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect(
        "env-get-updated", number_chapters, priority=900
    )  # after Sphinx's own numbers
    app.connect("html-page-context", set_text)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
