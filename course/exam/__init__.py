"""``python -m course exam SEED``: a paper and its marking guide, with numbers that the seed draws.

``questions.yml`` has the places of the paper, from each of which the seed draws a question, and
says what a question is. The same seed gives the same exam; keep it to yourself. The book's mock
exam is that of seed 0.
"""

import argparse
import base64
import math
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
import yaml
from einops import rearrange
from jinja2 import Environment, FileSystemLoader
from torch import nn
from torch.nn import functional as F

from course.check import EXERCISES
from course.claims import card, load
from course.quiz import COMPUTED, figure

FOLDER = Path(__file__).parent
KNOWN = {"torch": torch, "math": math} | {f.__name__: f for f in (sum, len, round, range, tuple)}
MARKUP = re.compile(r"[\\`*_{}\[\]<>$~^|@#]")  # what Markdown would read as its own
FIGURE = re.compile(r"!\[\]\(figure:([\w-]+)\)")


def places(seed: int) -> Iterator[dict[str, Any]]:
    """The paper's questions in order, with their answers, the values drawn and computed."""
    draw = random.Random(seed)
    for place in yaml.safe_load((FOLDER / "questions.yml").read_text(encoding="utf-8")):
        of = {"rule": place.get("guide")}
        for question in draw.sample(place["questions"], place.get("drawn", 1)):
            values = KNOWN | {"draw": draw}
            for name, expression in question.get("given", {}).items():
                values[name] = eval(str(expression), values)
            texts: dict[str, Any] = {
                key: COMPUTED.from_string(question[key]).render(values) for key in ("ask", "guide")
            }
            if claim := question.get("card"):
                rows = [(claim, load().claims[claim].statement), *card.without_answer(claim)]
                texts["card"] = [(head, MARKUP.sub(r"\\\g<0>", said)) for head, said in rows]
            if "exercise" in question:
                texts["said"] = said(question["exercise"], question["code"])
            yield {**place, **of, **question, **texts}
            of = {"section": "", "intro": "", "rule": ""}


@cache
def said(exercise: str, code: str) -> str:
    """What a check says of code."""
    names: dict[str, Any] = KNOWN | {"F": F, "nn": nn, "rearrange": rearrange}
    exec(code, names)
    return EXERCISES[exercise](names[exercise]).detail


def written(part: str, seed: int) -> str:
    """The ``paper`` of a seed, or the ``marking`` guide, as Markdown."""
    template = Environment(loader=FileSystemLoader(FOLDER)).get_template(f"{part}.md")
    return template.render(places=list(places(seed)))


def page(part: str, seed: int) -> str:
    """As ``written``, as a page that needs nothing beside it."""
    import pypandoc

    def embedded(match: re.Match[str]) -> str:
        _, _, alt, image = figure(match[1])
        return f"![{alt}](data:image/png;base64,{base64.b64encode(image).decode()})"

    text = FIGURE.sub(embedded, written(part, seed))
    title = {"paper": "Exam", "marking": f"Marking guide of exam {seed}"}[part]
    options = ["--standalone", "--mathml", f"--metadata=title:{title}", f"--css={FOLDER}/look.css"]
    return pypandoc.convert_text(
        text, "html", "markdown-implicit_figures", extra_args=[*options, "--embed-resources"]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m course exam", description=__doc__)
    parser.add_argument("seed", type=int, help="a number; whoever knows it can write the exam, too")
    parser.add_argument("--out", type=Path, default=Path("_build/exam"), help="(_build/exam)")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for part in ("paper", "marking"):
        (options.out / f"{part}.html").write_text(page(part, options.seed), encoding="utf-8")
    print(f"{options.out}/paper.html and marking.html")
    return 0
