"""The table: what each instrument makes of each architecture, found by trying, and its page.

python -m tests.vitlab.tried.table [NAME ...]        tries all, or these, and writes both
"""

import json
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

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
    r"positions, which are no": "the table holds more than the patches",
    r"one table of positions": "not one table of positions",
    r"expected logits": "no logits",
    r"does not follow from": "the answer needs more than the last block",
    r"neither tokens of a known grid|patches of": "the grid of a stage is not known",
    r"of \d+ tokens come from": "the grid of a stage is not known",
    r"patches: got|reading order": "the tokens are no grid of patches",
    r"one image at a time": "all images in one sequence",
    r"as many tensors|one floating tensor": "blocks give several tensors",
}


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
    """A line of the page's table."""
    why: dict[str, list[str]] = {}
    for instrument, said in cells.items():
        if said != "works":
            why.setdefault(reason(said), []).append(f"`{instrument}`")
    refused = "; ".join(f"{', '.join(names)}: {short}" for short, names in why.items())
    about = ARCHITECTURES[name]
    given = f"The grid must be given, here `grid={about.give}`. " if about.give else ""
    attention = f"<br>`{about.weights}`" if cells["record"] == "works" else ""
    return f"| {name.partition(' ')[2]}{attention} | {given}{refused or 'nothing'} |"


def page(table: Mapping[str, Cells]) -> str:
    """The page's tables, one for each library."""
    libraries: dict[str, list[str]] = {}
    for name, cells in table.items():
        libraries.setdefault(name.partition(" ")[0], []).append(row(name, cells))
    titles = {"HF": "Hugging Face transformers"}
    head = "| model and attention | refused |\n|---|---|"
    tables = ("\n".join([head, *rows, ""]) for rows in libraries.values())
    names = (titles.get(library, library) for library in libraries)
    return "".join(f"\n## {name}\n\n{table}" for name, table in zip(names, tables, strict=True))


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
