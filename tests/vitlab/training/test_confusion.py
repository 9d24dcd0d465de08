import csv
from dataclasses import replace

import pytest
import torch

from tests.vitlab.training.small import bright_or_dark, tiny
from vitlab.training.evaluate import as_csv, by_class, confusion, matrix_rows, read_matrix
from vitlab.training.loop import train
from vitlab.training.recipe import Recipe

MATRIX = torch.tensor([[3, 1, 0], [2, 0, 2], [0, 0, 0]])
NAMES = ["a cat, asleep", 'the "dog"', "bird"]


def test_rows_are_what_images_show_and_columns_what_they_are_taken_for():
    taken = torch.tensor([0, 0, 1, 0, 0, 2, 0, 2])
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    assert torch.equal(confusion(torch.eye(3)[taken], labels), MATRIX)


def test_each_class_has_its_accuracy_and_what_it_is_mostly_taken_for():
    head, *rows = by_class(MATRIX, NAMES)
    assert head == ["class", "images", "right", "accuracy", "mostly taken for"]
    assert rows[0] == [NAMES[0], "4", "3", "0.7500", 'the "dog" (1)']
    assert rows[1] == [NAMES[1], "4", "0", "0.0000", "a cat, asleep (2)"]
    assert rows[2] == ["bird", "0", "0", "-", "-"]


def test_a_matrix_is_read_back_from_its_csv_whatever_the_names():
    text = as_csv(matrix_rows(MATRIX, NAMES))
    assert torch.equal(read_matrix(text), MATRIX)
    assert next(csv.reader(text.splitlines()))[1:] == NAMES


def test_the_files_of_a_training_are_of_its_model_on_the_test_part(tmp_path):
    data, model = replace(bright_or_dark(), classes=("a,b", "caf\udce9")), tiny()
    results = train(model, data, Recipe(steps=12, batch_size=16), out=tmp_path)
    matrix = read_matrix((tmp_path / "confusion.csv").read_text())
    predicted = model(model.preprocess(data.test.images)).argmax(1)
    counts = [((data.test.labels == i) & (predicted == j)).sum() for i in (0, 1) for j in (0, 1)]
    assert matrix.flatten().tolist() == counts
    assert matrix.trace().item() / matrix.sum().item() == pytest.approx(results.test.accuracy)
    rows = list(csv.DictReader((tmp_path / "classes.csv").open()))
    assert [row["class"] for row in rows] == ["a,b", "caf\\udce9"]
    assert [int(row["right"]) for row in rows] == matrix.diag().tolist()
    card = (tmp_path / "card.md").read_text()
    assert f"| a,b | {rows[0]['images']} | {rows[0]['right']} |" in card
