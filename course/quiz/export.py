"""``python -m course quiz``: the quiz bank as GIFT and QTI 2.1, for learning systems to import.

GIFT is Moodle's format, a text; QTI is that of IMS, a zip. Formulas are TeX in GIFT, which Moodle
sets by MathJax, and MathML in QTI.
"""

import argparse
import base64
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from course.quiz import FOLDER, Item, bank

CUT = "HERE-ENDS-A-TEXT"
Shown = tuple[Item, str, list[tuple[str, str]]]  # as HTML the question, the answers with reasons


def as_html(items: Sequence[Item], formulas: str) -> Iterator[Shown]:
    """Questions with all texts converted by one call of pandoc; formulas: mathml, mathjax."""
    import pypandoc

    texts = [text for i in items for text in (i.question, *sum(i.answers.items(), ()))]
    options = [f"--{formulas}", "--syntax-highlighting=none", "--wrap=none"]
    html = pypandoc.convert_text(f"\n\n{CUT}\n\n".join(texts), "html4", "md", extra_args=options)
    parts = iter(part.strip() for part in html.split(f"<p>{CUT}</p>"))
    for item in items:
        yield item, next(parts), [(next(parts), next(parts)) for _ in item.answers]


def escaped(html: str) -> str:
    """HTML in one line of GIFT; braces as numbers, since some readers do not know them escaped."""
    lines = re.sub(r"(?s)<pre.*?</pre>", lambda code: code[0].replace("\n", "<br />"), html)
    one_line = " ".join(lines.split("\n")).replace("{", "&#123;").replace("}", "&#125;")
    return re.sub(r"[\\~=#:]", r"\\\g<0>", one_line)


TEMPLATES = Environment(loader=FileSystemLoader(FOLDER))
TEMPLATES.filters |= {"gift": escaped, "base64": lambda data: base64.b64encode(data).decode()}


def filled(template: str, **values: object) -> str:
    return TEMPLATES.get_template(template).render(values)


def gift(items: Sequence[Item]) -> str:
    """The questions in Moodle's format, a category for each chapter; figures are in the text."""
    return filled("gift.txt", questions=list(as_html(items, "mathjax")))


def qti(items: Sequence[Item], path: Path) -> None:
    """The questions as a package of QTI 2.1: an item each, and a test with a section a chapter."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name in ("imsmanifest.xml", "test.xml"):
            package.writestr(name, filled(name, items=items))
        for item, ask, answers in as_html(items, "mathml"):
            text = filled("item.xml", item=item, ask=ask, answers=answers)
            package.writestr(f"{item.id}.xml", text)
            if item.figure:
                package.writestr(f"{item.id}.png", item.picture[2])


def page(number: int) -> str:
    """The questions of a chapter as Markdown, to be tried in a page of the book."""
    return filled("page.md", items=[i for i in bank() if int(i.chapter[:2]) == number])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m course quiz", description=__doc__)
    parser.add_argument("chapter", type=int, nargs="*", help="numbers of chapters, these alone")
    parser.add_argument("--out", type=Path, default=Path("_build/quiz"), help="(_build/quiz)")
    options = parser.parse_args(arguments)
    known = {int(item.chapter[:2]) for item in bank()}
    if wrong := {*options.chapter} - known:
        parser.error(f"got {', '.join(map(str, wrong))}, expected chapters 0 to {max(known)}")
    items = [i for i in bank() if int(i.chapter[:2]) in (options.chapter or known)]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "quiz.gift.txt").write_text(gift(items), encoding="utf-8")
    qti(items, options.out / "quiz.qti.zip")
    print(f"{len(items)} questions: quiz.gift.txt and quiz.qti.zip in {options.out}")
    return 0
