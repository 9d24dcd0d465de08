"""A row of a trained study: the run that was chosen, and the scores over its seeds."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np
from scipy import stats

from studies.runner.storage import Figures


def best(candidates: Sequence[Figures]) -> int | None:
    """The index of the run with the best validation accuracy; none, if all diverged.

    Equal accuracies, as on a small validation part, are decided by the likelihood.
    """
    held_out = {}
    for i, candidate in enumerate(candidates):
        if candidate["scores"]:
            scores = candidate["scores"]["validation"]
            held_out[i] = scores["accuracy"], scores["log_likelihood"]
    return max(held_out, key=held_out.__getitem__) if held_out else None


def row(candidates: Sequence[Figures], finals: Sequence[Figures]) -> Figures:
    """The search, the runs that followed, one a seed, and their scores on the test part.

    There are no ``finals`` where every candidate diverged.
    """
    first = (finals or candidates)[0]  # what follows a search may be of another size
    about = {
        "search": {
            run["key"]: run["scores"] and run["scores"]["validation"]["accuracy"]
            for run in candidates
        },
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
    accuracy = {"mean": fmean(values), "low": low, "high": high, "over": over, "values": values}
    return about | {
        "accuracy": accuracy,
        "log_likelihood": fmean(test["log_likelihood"] for test in tests),
        "calibration_error": fmean(test["calibration_error"] for test in tests),
        "train_accuracy": fmean(parts["train"]["accuracy"] for parts in scores),
        "scores": scores,
    }


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
