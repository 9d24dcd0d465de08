"""Which classes a classifier takes for which others."""

import csv
import io
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

Confusion = Int64[Tensor, "classes classes"]


def confusion(logits: Float[Tensor, "batch classes"], labels: Int64[Tensor, " batch"]) -> Confusion:
    """Counts the images of each class, a row, by the class that they were taken for, a column."""
    classes = logits.shape[1]
    cells = labels * classes + logits.argmax(1)
    return cells.bincount(minlength=classes**2).view(classes, classes)


def by_class(matrix: Confusion, classes: Sequence[str]) -> list[list[str]]:
    """A table, its first row the heads of its columns: how often each class is recognised.

    The last column names the class that its images are most often taken for otherwise; of a class
    without images there is no accuracy.
    """
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
    rows = [
        [name, *map(str, counts)] for name, counts in zip(classes, matrix.tolist(), strict=True)
    ]
    return [["is \\ taken for", *classes], *rows]


def read_matrix(text: str) -> Confusion:
    """The way back from :func:`matrix_rows` as CSV."""
    _, *rows = csv.reader(io.StringIO(text))
    return torch.tensor([[int(cell) for cell in row[1:]] for row in rows])


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    """A table as CSV, its lines ending as everywhere else."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
