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
    for i, candidate in enumerate(candidates):
        if candidate["scores"]:
            scores = candidate["scores"]["validation"]
            held_out[i] = scores["accuracy"], scores["log_likelihood"]
    return max(held_out, key=held_out.__getitem__) if held_out else None


def row(candidates: Sequence[Result], finals: Sequence[Result]) -> dict[str, Any]:
    """One row: the search, the runs that followed, one a seed, and their scores on the test part.

    There are no ``finals`` where every candidate diverged.
    """
    search = {
        run["key"]: run["scores"] and run["scores"]["validation"]["accuracy"] for run in candidates
    }
    first = (finals or candidates)[0]  # what follows a search may be of another size
    about = {
        "search": search,
        "runs": [run["key"] for run in finals],
        "parameters": first["parameters"],
        "operations": first["operations"],
        "diverged": sum(not run["scores"] for run in finals or candidates),
    }
    scores = [run["scores"] for run in finals if run["scores"]]
    if not scores:
        return about
    tests = [parts["test"] for parts in scores]
    values = [test["accuracy"] for test in tests]
    low, high = interval(values, tests[0]["pictures"])
    over = "seeds" if len(values) > 1 else "test pictures"
    return about | {
        "accuracy": {
            "mean": fmean(values), "low": low, "high": high, "over": over, "values": values
        },
        "log_likelihood": fmean(test["log_likelihood"] for test in tests),
        "calibration_error": fmean(test["calibration_error"] for test in tests),
        "train_accuracy": fmean(parts["train"]["accuracy"] for parts in scores),
        "scores": scores,
    }  # fmt: skip


def interval(accuracies: Sequence[float], pictures: int) -> tuple[float, float]:
    """The 95 % interval of accuracies on this many images, one a seed.

    Several give Student's interval of their mean. A single one gives Wilson's, for the choice of
    test images alone; another seed can move it further.
    """
    if len(accuracies) == 1:
        right = round(accuracies[0] * pictures)
        wilson = stats.binomtest(right, pictures).proportion_ci(method="wilson")
        return float(wilson.low), float(wilson.high)
    half = stats.sem(accuracies) * stats.t.ppf(0.975, len(accuracies) - 1)
    return float(np.mean(accuracies) - half), float(np.mean(accuracies) + half)


def printed(rows: dict[str, dict[str, Any]]) -> str:
    """The rows as text."""
    lines = [f"{'':20}{'accuracy':>10}{'95 %':>16}  seeds  calibration  parameters"]
    for name, figures in rows.items():
        if "accuracy" not in figures:
            lines.append(f"{name:20}{'diverged':>10}")
            continue
        a = figures["accuracy"]
        lines.append(
            f"{name:20}{a['mean']:10.2%}{a['low']:9.2%}-{a['high']:.2%}{len(a['values']):7}"
            f"{figures['calibration_error']:13.2%}{figures['parameters']:12,}"
        )
    return "\n".join(lines)
