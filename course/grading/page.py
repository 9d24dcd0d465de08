"""The page that a student gets: points and, for each exercise, what its check says."""

from html import escape

from course.grading.grade import Graded
from course.grading.points import WORDS, Mark

STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1b1b; background: #fff; }
h1 { font-size: 1.4rem; margin-bottom: 0; }
section { border-left: .3rem solid #8a8a8a; margin: 1rem 0; padding: .2rem 1rem; }
section.passed { border-color: #2a7a3b; }
section.failed, section.stopped { border-color: #b3261e; }
h2 { font-size: 1rem; margin: 0; display: flex; justify-content: space-between; gap: 1rem; }
p { margin: .3rem 0; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #181818; } }
"""


def page(each: Graded) -> str:
    """The page as HTML. It needs nothing beside it."""
    name, chapter = escape(each.submission.student), escape(each.chapter.replace("_", " "))
    body = f"<p>{escape(each.problem)}</p>" if each.problem else "".join(map(_mark, each.marks))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}: {each.points:g} of {each.possible:g}</title><style>{STYLE}</style></head>"
        f"<body><h1>{name}</h1><p>{chapter}: <strong>{each.points:g} of {each.possible:g}</strong> "
        f"points</p>{body}</body></html>\n"
    )


def _mark(mark: Mark) -> str:
    points = f"{mark.points:g} of {mark.out_of:g}"
    met = f"<p>{mark.share:.0%} of what is asked was met before that.</p>"
    return (
        f'<section class="{mark.state}"><h2><code>{escape(mark.exercise)}</code> '
        f"<span>{WORDS[mark.state]}, {points}</span></h2>"
        + (f"<p>{escape(mark.message)}</p>" if mark.message else "")
        + (met if 0 < mark.share < 1 else "")
        + "</section>"
    )
