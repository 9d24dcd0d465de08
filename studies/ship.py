"""Makes a finished run a model that travels with the package. ``python -m studies.ship --help``

Its parameters are stored in half precision; what BatchNorm remembers of the pictures, few numbers
whose range is that of the data, stays in float32. The scores are measured again with the file as
it is loaded, and nothing is shipped that half precision has harmed.
"""

import argparse
import json
import sys
from collections.abc import Mapping

import minivit
from minivit.data import load_data
from minivit.hub.files import replacing
from minivit.hub.zoo import CHECKPOINTS, MODELS
from minivit.training import Scores, evaluate
from minivit.training.state import CARD, MODEL
from studies.one import HERE, Place

TOLERANCE = 0.005  # of an accuracy
LICENCE = "MIT"  # of the weights, as of the code
TRAINED_ON = {
    "DIGITS": "scikit-learn's digits (E. Alpaydin and C. Kaynak (1998), Optical Recognition of "
    "Handwritten Digits, UCI Machine Learning Repository; CC BY 4.0), whose pictures are not "
    "included",
    "CIFAR10": "CIFAR-10 (A. Krizhevsky (2009), Learning Multiple Layers of Features from Tiny "
    "Images), whose pictures are not included",
    "SHAPES": "pictures drawn by `minivit.data.shapes`",
}


def ship(study: str, row: str, name: str, place: Place = HERE) -> dict[str, Scores]:
    """Writes ``minivit/checkpoints/NAME.safetensors`` and its card, from a row's first run.

    Args:
        study: Its results are in ``book/results``.
        row: Of its table.
        name: What :func:`minivit.load` will call the model.
        place: Where results, weights and ``minivit/checkpoints`` are.

    Returns:
        The scores on the test part before, ``"float32"``, and after, ``"half"``.

    Raises:
        ValueError: The name is that of an untrained model or no name, there is no such row, or half
            precision costs more than half a point on the validation or the test part.
        OSError: The study is not finished, its weights are on another machine, or nothing can be
            written.
    """
    if name in MODELS or not name.isidentifier():
        raise ValueError(f"expected a name of letters, digits and _ that is not taken: got {name}")
    about = json.loads((place.root / f"book/results/{study}.json").read_text())
    if row not in about["rows"]:
        raise ValueError(f"{study} has no row {row}: expected one of {', '.join(about['rows'])}")
    line = about["rows"][row]
    run = json.loads(place.result(line["runs"][0]).read_text())
    folder = place.folder(run["key"])
    card = (folder / CARD).read_text(encoding="utf-8")
    model, data = minivit.load(folder / MODEL), load_data(run["run"]["data"])
    held_out = {"validation": data.validation, "test": data.test}
    scores = {part: {"float32": evaluate(model, split)} for part, split in held_out.items()}
    for parameter in model.parameters():
        parameter.data = parameter.data.half()
    model.licence = LICENCE
    checkpoints = place.root / CHECKPOINTS.relative_to(HERE.root)
    checkpoints.mkdir(parents=True, exist_ok=True)
    with replacing(checkpoints / f"{name}.safetensors") as scratch:
        minivit.save(model, scratch)
        shipped = minivit.load(scratch)
        for part, split in held_out.items():
            scores[part]["half"] = evaluate(shipped, split)
            before, after = (scores[part][kind].accuracy for kind in ("float32", "half"))
            if abs(before - after) > TOLERANCE:
                raise ValueError(
                    f"half precision takes the {part} accuracy from {before:.4f} to {after:.4f}: "
                    f"expected at most {TOLERANCE} between them"
                )
    title, _, rest = card.removeprefix("# ").partition("\n")
    accuracy, source = line["accuracy"], run["run"]["data"]
    text = "\n".join([
        f"# {name}: {title}", "", f"    model = minivit.load({name!r})", "",
        "## As shipped", "",
        "The parameters are stored in half precision and loaded in float32.", "",
        *_table(scores), "",
        f"Run {run['key']} of {run['date']}, commit {run['commit']}: seed "
        f"{run['run']['recipe']['seed']}, which was fixed before training. It is trained again, "
        f"and compared, by `{about['command']} --recheck {run['key']}`. In row {row} of that study "
        f"the test accuracy is {accuracy['mean']:.4f} (95 %: {accuracy['low']:.4f} to "
        f"{accuracy['high']:.4f}, over {len(accuracy['values'])} seeds).".replace(
            "over 1 seeds", "over test pictures, one seed"
        ), "",
        f"Licence of the weights: {LICENCE}. They were trained on {TRAINED_ON[source]}. What "
        "follows was measured when it was trained, in float32.",
    ])  # fmt: skip
    with replacing(checkpoints / f"{name}.md") as scratch:
        scratch.write_text(f"{text}\n{rest}", encoding="utf-8")
    return scores["test"]


def _table(scores: Mapping[str, Mapping[str, Scores]]) -> list[str]:
    lines = [
        "| part | precision | pictures | accuracy | mean log-likelihood | calibration error |",
        "|---|---|---|---|---|---|",
    ]
    for part, kinds in scores.items():
        for kind, found in kinds.items():
            numbers = (found.accuracy, found.log_likelihood, found.calibration_error)
            cells = " | ".join(f"{number:.4f}" for number in numbers)
            lines.append(f"| {part} | {kind} | {found.pictures:,} | {cells} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser("python -m studies.ship", description=ship.__doc__)
    parser.add_argument("study", help="such as digits")
    parser.add_argument("row", help="of its table, such as digits_vit")
    parser.add_argument("name", nargs="?", help="of the model (default: that of the row)")
    options = parser.parse_args()
    try:
        scores = ship(options.study, options.row, options.name or options.row)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for kind, found in scores.items():
        print(f"{kind:8} {found.accuracy:.4f}, calibration error {found.calibration_error:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
