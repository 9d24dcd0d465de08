"""Publishes a finished run with the package: ``python -m studies NAME --publish ROW MODEL``.

Its parameters are stored in half precision; the statistics of BatchNorm, few numbers with the range
of the data, stay in float32. A model that half precision harms is not published.
"""

import json
from pathlib import Path

from jinja2 import StrictUndefined, Template

import minivit
from minivit.catalogue import CHECKPOINTS, MODELS
from minivit.files import atomic_write
from studies.runner.storage import HERE, Store
from vitlab.data import load_data
from vitlab.training import Scores, evaluate
from vitlab.training.state import CARD, MODEL, write

TOLERANCE = 0.005  # of an accuracy
LICENCE = "MIT"  # of the weights, as of the code
CARD_TEMPLATE = Path(__file__).with_name("published.md.j2").read_text(encoding="utf-8")


def publish(study: str, row: str, name: str, store: Store = HERE) -> dict[str, Scores]:
    """Writes a row's first run as ``minivit/checkpoints/NAME.safetensors``, and its card; gives the
    scores on the test part before, ``"float32"``, and after, ``"half"``."""
    if name in MODELS or not name.isidentifier():
        raise ValueError(f"expected a name of letters, digits and _ that is not taken: got {name}")
    figures = json.loads(store.table(study).read_text())["rows"][row]
    run = json.loads(store.result(figures["runs"][0]).read_text())
    folder = store.folder(run["key"])
    title, _, rest = (folder / CARD).read_text(encoding="utf-8").removeprefix("# ").partition("\n")
    model = minivit.load(folder / MODEL)
    data = load_data(run["run"]["data"])
    held_out = {"validation": data.validation, "test": data.test}
    scores = {part: {"float32": evaluate(model, split)} for part, split in held_out.items()}
    for parameter in model.parameters():
        parameter.data = parameter.data.half()
    model.licence = LICENCE
    checkpoints = store.root / CHECKPOINTS.relative_to(HERE.root)
    checkpoints.mkdir(parents=True, exist_ok=True)
    with atomic_write(checkpoints / f"{name}.safetensors") as scratch:
        minivit.save(model, scratch)
        lesser = minivit.load(scratch)
        for part, split in held_out.items():
            scores[part]["half"] = evaluate(lesser, split)
            before, after = (scores[part][kind].accuracy for kind in ("float32", "half"))
            if abs(before - after) > TOLERANCE:
                raise ValueError(
                    f"half precision takes the {part} accuracy from {before:.4f} to {after:.4f}: "
                    f"expected at most {TOLERANCE} between them"
                )
    about = {"title": title, "rest": rest, "licence": LICENCE, "accuracy": figures["accuracy"]}
    template = Template(CARD_TEMPLATE, trim_blocks=True, undefined=StrictUndefined)
    text = template.render(about, study=study, row=row, name=name, stored=run, scores=scores)
    write(checkpoints / f"{name}.md", text)
    return scores["test"]
