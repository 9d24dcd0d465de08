"""A study's table: for each row the run that was chosen, and the scores over its seeds."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
from scipy import stats

Result = dict[str, Any]


def best(candidates: Sequence[Result]) -> int | None:
    """The index of the run with the best validation accuracy; none, if all diverged.

    Equal accuracies, as on a small validation part, are decided by the likelihood.
    """
    held_out = {}
    for i, found in enumerate(candidates):
        if found["scores"]:
            scores = found["scores"]["validation"]
            held_out[i] = scores["accuracy"], scores["log_likelihood"]
    return max(held_out, key=held_out.__getitem__) if held_out else None


def row(candidates: Sequence[Result], finals: Sequence[Result]) -> dict[str, Any]:
    """One row: the search, the runs that followed, one a seed, and their scores on the test part.

    There are no ``finals`` where every candidate diverged.
    """
    search = {
        found["key"]: found["scores"] and found["scores"]["validation"]["accuracy"]
        for found in candidates
    }
    one = (finals or candidates)[0]  # what follows a search may be of another size
    about = {
        "search": search,
        "runs": [found["key"] for found in finals],
        "parameters": one["parameters"],
        "operations": one["operations"],
        "diverged": sum(not found["scores"] for found in finals or candidates),
    }
    scores = [found["scores"] for found in finals if found["scores"]]
    if not scores:
        return about
    tests = [parts["test"] for parts in scores]
    values = [test["accuracy"] for test in tests]
    low, high = interval(values, tests[0]["pictures"])
    accuracy = {
        "mean": fmean(values),
        "low": low,
        "high": high,
        "over": "seeds" if len(values) > 1 else "test pictures",
        "values": values,
    }
    others = {
        name: fmean(test[name] for test in tests)
        for name in ("log_likelihood", "calibration_error")
    }
    train = fmean(parts["train"]["accuracy"] for parts in scores)
    return about | {"accuracy": accuracy, **others, "train_accuracy": train, "scores": scores}


def interval(accuracies: Sequence[float], pictures: int) -> tuple[float, float]:
    """The 95 % interval of accuracies on this many images, one a seed.

    Several give Student's interval of their mean. A single one gives Wilson's, for the choice of
    test images alone; another seed can move it further.
    """
    if len(accuracies) == 1:
        right = round(accuracies[0] * pictures)
        found = stats.binomtest(right, pictures).proportion_ci(method="wilson")
        return float(found.low), float(found.high)
    half = stats.sem(accuracies) * stats.t.ppf(0.975, len(accuracies) - 1)
    return float(np.mean(accuracies) - half), float(np.mean(accuracies) + half)


def printed(rows: dict[str, dict[str, Any]]) -> str:
    """The rows as text."""
    lines = [
        f"{'':20}{'accuracy':>10}{'95 %':>16}  {'over':14}{'calibration':>12}{'parameters':>12}"
    ]
    for name, found in rows.items():
        if "accuracy" not in found:
            lines.append(f"{name:20}{'diverged':>10}")
            continue
        a = found["accuracy"]
        over = f"{len(a['values'])} seeds" if a["over"] == "seeds" else a["over"]
        lines.append(
            f"{name:20}{a['mean']:10.2%}{a['low']:9.2%}-{a['high']:.2%}  {over:14}"
            f"{found['calibration_error']:12.2%}{found['parameters']:12,}"
        )
    return "\n".join(lines)
