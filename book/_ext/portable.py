"""Gives Sphinx the notebooks with roles, labels and captions in place of plain Markdown.

What answers a prediction is in an element that opens; a list below the question becomes a choice.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

import nbformat
from nbformat import NotebookNode, from_dict, v4
from sphinx.application import Sphinx

from book.tools.notebooks import tags
from book.tools.portable import folded_title, for_sphinx
from course import exam
from course.quiz import figure
from course.quiz.export import page as quiz

ASKED = re.compile(r"^```\{(quiz|exam)\} (\w+)\n```$", re.MULTILINE)  # of a chapter; a part
CHOICE = re.compile(r"(?:^- .*\n?(?:^ +.*\n?)*)+\Z", re.MULTILINE)  # the list at a text's end


def with_answers(cells: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
    """Cells with runs of answers in an element each; code that is open stays above it."""
    for is_answer, group in groupby(cells, lambda cell: "answer" in tags(cell)):
        run = list(group)
        if is_answer:
            first, name = run[0], run[0].id
            if first.cell_type == "code" and "hide-input" not in tags(first):
                yield from_dict(first | {"outputs": []})
                shown = first.metadata | {"tags": [*tags(first), "remove-input"]}
                run[0] = from_dict(first | {"id": f"{name}-shown", "metadata": shown})
            label = first.metadata.get("summary", "Show what happened")
            opening = f'<details class="answer"><summary>{label}</summary>'
            yield v4.new_markdown_cell(opening, id=f"{name}-open")
            yield from [*run, v4.new_markdown_cell("</details>", id=f"{name}-close")]
            continue
        for cell in run:
            if right := cell.metadata.get("right"):  # the number of the right choice
                claim = cell.metadata.get("claim", "")  # whose verdict settles a bet
                box = rf'<div class="predict" data-right="{right}" data-claim="{claim}">\n\n\g<0>'
                text = CHOICE.sub(rf"{box}\n\n</div>\n", cell.source)
                cell = from_dict(cell | {"source": text})
            yield cell


def read(app: Sphinx, page: str, source: list[str]) -> None:
    if app.env.doc2path(page).endswith(".ipynb"):
        notebook = for_sphinx(nbformat.reads(source[0], as_version=4))
        for cell in notebook.cells:
            if "hide-input" in tags(cell):
                cell.metadata.setdefault("mystnb", {})["code_prompt_show"] = folded_title(cell)
        notebook.cells = list(with_answers(notebook.cells))
        source[0] = nbformat.writes(notebook)
    elif ASKED.search(source[0]):
        app.env.note_reread()
        source[0] = ASKED.sub(questions, source[0])


def questions(place: re.Match[str]) -> str:
    """The quiz of a chapter, or a part of the mock exam."""
    if place[1] == "quiz":
        return quiz(int(place[2]))
    copy = "```{{stored-image}} {} {}\n```".format
    return exam.FIGURE.sub(lambda match: copy(*figure(match[1])[:2]), exam.written(place[2], 0))


def setup(app: Sphinx) -> None:
    app.connect("source-read", read)
