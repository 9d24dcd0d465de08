"""How good a classifier is: its accuracy, its calibration, and which classes it confuses."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from minivit.model import Model
from minivit.shapes import Logits
from vitlab.data.dataset import Labels, Split
from vitlab.instruments.running import batches, evaluating, expect, known

BINS = 15  # of the calibration error
Confusion = Int64[Tensor, "classes classes"]


@dataclass(frozen=True)
class Scores:
    """Scores of a classifier on a number of ``pictures``; ``log_likelihood`` is a mean."""

    accuracy: float
    log_likelihood: float
    calibration_error: float
    pictures: int

    def __str__(self) -> str:
        return (
            f"accuracy {self.accuracy:.2%}, mean log-likelihood {self.log_likelihood:.4f}, "
            f"calibration error {self.calibration_error:.2%}, {self.pictures} images"
        )


@dataclass(frozen=True)
class Results:
    """Results of a training."""

    validation: Scores
    test: Scores
    confusion: Confusion = field(compare=False)  # of the test part
    lines: list[dict[str, Any]]  # of the log, one for each epoch
    steps: int
    seconds: float


def evaluate(model: Model, split: Split, batch_size: int = 256) -> Scores:
    """Scores a model in evaluation mode, in float32; ``model.preprocess`` prepares the images."""
    return scores_of(logits_of(model, split, batch_size), split.labels)


def logits_of(model: Model, split: Split, batch_size: int = 256) -> Logits:
    """The model's answers to all images, in evaluation mode, on the CPU."""
    device = next(model.parameters()).device
    what = "a model with preprocess, which loading or training sets"
    expect(model.preprocess is not None, what, f"a {type(model).__name__} without")
    with evaluating(model):
        chunks = batches(split.images, batch_size)[1]
        return torch.cat([model(model.preprocess(chunk.to(device))).cpu() for chunk in chunks])


def scores_of(logits: Logits, labels: Labels) -> Scores:
    """Scores of a classifier's answers."""
    logs = logits.double().log_softmax(1)
    accuracy = (logs.argmax(1) == labels).double().mean().item()
    log_likelihood = logs.gather(1, known(labels, logs)[:, None]).mean().item()
    return Scores(accuracy, log_likelihood, calibration_error(logs.exp(), labels), len(labels))


def calibration_error(probabilities: Float[Tensor, "batch classes"], labels: Labels) -> float:
    """The expected calibration error of Guo et al. (2017), "On Calibration of Modern Networks".

    In 15 bins by the model's largest probability, that is compared with the accuracy.
    """
    confidence, predicted = probabilities.double().max(1)
    right = (predicted == labels).double()
    index = (confidence * BINS).ceil().long().clamp(1, BINS) - 1  # (0, 1/15] is the first
    gap = torch.zeros(BINS, dtype=torch.float64).index_add(0, index, confidence - right)
    return (gap.abs().sum() / len(labels)).item()


def confusion(logits: Logits, labels: Labels) -> Confusion:
    """Counts the images of each class, a row, by the class that they were taken for, a column."""
    classes = logits.shape[1]
    cells = known(labels, logits) * classes + logits.argmax(1)
    return cells.bincount(minlength=classes**2).view(classes, classes)


def by_class(matrix: Confusion, classes: Sequence[str]) -> list[list[str]]:
    """A table, heads first: how often each class is recognised, and what it is mostly taken for."""
    rows = [["class", "images", "right", "accuracy", "mostly taken for"]]
    for i, (name, counts) in enumerate(zip(classes, matrix.tolist(), strict=True)):
        images, right = sum(counts), counts[i]
        counts[i] = 0
        worst = max(counts)
        other = f"{classes[counts.index(worst)]} ({worst})" if worst else "-"
        accuracy = f"{right / images:.4f}" if images else "-"
        rows.append([name, str(images), str(right), accuracy, other])
    return rows


def matrix_rows(matrix: Confusion, classes: Sequence[str]) -> list[list[str]]:
    """A confusion matrix as a table with the names of the classes."""
    rows = zip(classes, matrix.tolist(), strict=True)
    return [["is \\ taken for", *classes], *([name, *map(str, row)] for name, row in rows)]


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    """A table as CSV, its lines ending as everywhere else."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
