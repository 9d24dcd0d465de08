"""Publishes a finished run with the package: ``python -m studies NAME --publish ROW MODEL``.

Its parameters are stored in half precision; the statistics of BatchNorm, few numbers with the range
of the data, stay in float32. A model that half precision harms is not published.
"""

import json

import minivit
from minivit.catalogue import CHECKPOINTS, MODELS
from minivit.files import atomic_write
from studies.runner.storage import HERE, Store
from vitlab.data import load_data
from vitlab.training import Scores, evaluate
from vitlab.training.card import table
from vitlab.training.state import CARD, MODEL, write

TOLERANCE = 0.005  # of an accuracy
HEADS = ["part", "precision", "images", "accuracy", "mean log-likelihood", "calibration error"]
LICENCE = "MIT"  # of the weights, as of the code
TRAINED_ON = {
    "DIGITS": "scikit-learn's digits (E. Alpaydin and C. Kaynak (1998), Optical Recognition of "
    "Handwritten Digits, UCI Machine Learning Repository; CC BY 4.0), whose images are not "
    "included",
    "CIFAR10": "CIFAR-10 (A. Krizhevsky (2009), Learning Multiple Layers of Features from Tiny "
    "Images), whose images are not included; the copy of it that was used holds them as JPEG "
    "files of quality 75",
    "SHAPES": "images drawn by `vitlab.data.shapes`",
}


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
    rows = [
        [part, kind, f"{s.pictures:,}", s.accuracy, s.log_likelihood, s.calibration_error]
        for part, kinds in scores.items()
        for kind, s in kinds.items()
    ]
    text = f"""# {name}: {title}

    model = minivit.load({name!r})

## As shipped

The parameters are stored in half precision and loaded in float32.

{table(HEADS, *rows)}

{_origin(study, row, figures["accuracy"], run)}

Licence of the weights: {LICENCE}. They were trained on {TRAINED_ON[run["run"]["data"]]}. \
What follows was measured when it was trained, in float32.
{rest}"""
    write(checkpoints / f"{name}.md", text)
    return scores["test"]


def _origin(study: str, row: str, accuracy: dict, run: dict) -> str:
    seeds = len(accuracy["values"])
    over = f"{seeds} seeds" if seeds > 1 else "test images, one seed"
    return (
        f"Run {run['key']} of {run['date']}, commit {run['commit']}: seed "
        f"{run['run']['recipe']['seed']}, which was fixed before training. It is trained again, "
        f"and compared, by `python -m studies {study} --recheck {run['key']}`. In row {row} of "
        f"that study the test accuracy is {accuracy['mean']:.4f} (95 %: {accuracy['low']:.4f} to "
        f"{accuracy['high']:.4f}, over {over})."
    )
