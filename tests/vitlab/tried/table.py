"""The table: what each instrument makes of each architecture, found by trying, and its page.

python -m tests.vitlab.tried.table [NAME ...]        tries all, or these, and writes both
"""

import json
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from string import ascii_lowercase

import torch

import minivit
import vitlab
from book.tools.address import ROOT
from minivit.import_torchvision import patch_torchvision_import
from tests.vitlab.tried.architectures import ARCHITECTURES, Tried
from tests.vitlab.tried.instruments import INSTRUMENTS

PACKAGES = {Path(package.__file__).parent for package in (minivit, vitlab)}
TABLE = ROOT / "book/tried_with.json"
PAGE = ROOT / "book/tried_with.md"
MARKS = "<!-- what follows is written by python -m tests.vitlab.tried.table -->\n"
Cells = dict[str, str]  # by instrument: "works", or what minivit said when it refused
# What a refusal says, in short.
REASONS = {
    r"\[windows, heads|each in one window": "attention is in windows",
    r"such as channels": "attention is between channels",
    r"computes no attention|no attention weights were computed": "no attention",
    r"told apart": "one axis holds heads and images",
    r"keys\]: got \[\d+, \d+, \d+\] in": "one axis holds heads and images",
    r"expected attention weights \[images, heads": "attention is in windows",
    r"one attention in a block|more than once": "two softmaxes in one attention",
    r"same tokens in all|equally many tokens": "stages differ in their tokens",
    r"takes no tokens but its own": "stages differ in their tokens",
    r"no row of blocks": "no list of blocks from tokens to tokens",
    r"no residual connection": "no sum of two tensors is seen",
    r"tokens before them in": "the table holds more than the patches",
    r"one table of positions": "not one table of positions",
    r"expected logits": "no logits",
    r"neither tokens of a known grid|patches of": "the grid of a stage is not known",
    r"of \d+ tokens come from": "the grid of a stage is not known",
}
LETTERS = dict(zip(dict.fromkeys(REASONS.values()), ascii_lowercase, strict=False))


def built(about: Tried) -> tuple[torch.nn.Module, torch.Tensor]:
    """The model, random in every number, and two images."""
    from tests.parity import draw  # imports torchvision, which is to be mended before

    torch.manual_seed(0)
    model = draw(about.make()).eval()
    return model, torch.randn(2, 3, *about.size, generator=torch.Generator().manual_seed(0))


def tried(name: str) -> Cells:
    """What each instrument makes of an architecture; AssertionError if not what is so by hand."""
    about = ARCHITECTURES[name]
    model, images = built(about)
    cells, wrong = {}, []
    for instrument, check in INSTRUMENTS.items():
        try:
            with torch.no_grad():
                check(model, images, about)
            cells[instrument] = "works"
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            cells[instrument] = str(error)
            own = PACKAGES & {*Path(last.filename).parents}
            if not own or isinstance(error, LookupError):  # a name that the table got wrong
                wrong.append(f"{instrument}: {error!r}")
    assert not wrong, f"{name}: {wrong}"
    return cells


def reason(said: str) -> str:
    """A refusal in a few words."""
    return next(short for pattern, short in REASONS.items() if re.search(pattern, said))


def row(name: str, cells: Mapping[str, str]) -> str:
    """A line of the page's grid: a tick, or a letter for the reason."""
    marks = []
    for said in cells.values():
        why = "works" if said == "works" else reason(said)
        marks.append(f"{{abbr}}`{LETTERS.get(why, '✓')} ({why})`")
    given = "\\*" if ARCHITECTURES[name].give else ""
    return ",".join([f'"{name.partition(" ")[2]}{given}"', *marks])


def recorded(table: Mapping[str, Cells]) -> str:
    """The names under which a library's attention is recorded, each with its models."""
    models: dict[str, list[str]] = {}
    for name, cells in table.items():
        if cells["record"] == "works":
            models.setdefault(ARCHITECTURES[name].weights, []).append(name.partition(" ")[2])
    most, *others = sorted(models, key=lambda weights: -len(models[weights]))
    rest = "".join(f", or `{other}` ({'; '.join(models[other])})" for other in others)
    return f"`record` finds the attention as `{most}`{rest}.\n"


def page(table: Mapping[str, Cells]) -> str:
    """What works and why the rest does not, then a grid for each library."""
    said = [said for cells in table.values() for said in cells.values()]
    whole = sum({*cells.values()} == {"works"} for cells in table.values())
    text = (
        f"\n**{said.count('works')} of {len(said)} pairs of a model and an instrument work; every "
        f"instrument works on {whole} of {len(table)} models.** The letters: "
    )
    text += "; ".join(f"**{letter}** {why}" for why, letter in LETTERS.items()) + ".\n"
    for library in dict.fromkeys(name.partition(" ")[0] for name in table):
        own = {name: cells for name, cells in table.items() if name.startswith(f"{library} ")}
        title = {"HF": "Hugging Face transformers"}.get(library, library)
        lines = [f":header: {','.join(['Model', *INSTRUMENTS])}", ""]
        lines += [row(name, cells) for name, cells in own.items()]
        text += f"\n## {title}\n\n:::{{csv-table}}\n:class: tried\n:stub-columns: 1\n"
        text += "\n".join(lines) + f"\n:::\n\n{recorded(own)}"
    return text


def main(names: list[str]) -> None:
    patch_torchvision_import()
    table = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    for name in names or ARCHITECTURES:
        try:
            table[name] = tried(name)
        except AssertionError as error:
            print(error, file=sys.stderr)
    table = {name: table[name] for name in ARCHITECTURES if name in table}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    above = PAGE.read_text(encoding="utf-8").partition(MARKS)[0]
    PAGE.write_text(above + MARKS + page(table), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
