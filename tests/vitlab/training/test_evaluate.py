import csv
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from minivit.preprocessing import Preprocess
from tests.refusals import assert_refused
from tests.vitlab.training.small import bright_or_dark, tiny
from vitlab.training import Recipe, confusion, evaluate, train
from vitlab.training.evaluate import as_csv, by_class, calibration_error, matrix_rows

MATRIX = torch.tensor([[3, 1, 0], [2, 0, 2], [0, 0, 0]])
NAMES = ["a cat, asleep", 'the "dog"', "bird"]


def test_calibration_error_of_a_known_case():
    # Confidence 0.8 three times, right twice; confidence 0.6 once, wrong; bins of their own.
    p = torch.tensor([[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.6, 0.4]])
    expected = 3 / 4 * abs(0.8 - 2 / 3) + 1 / 4 * 0.6
    assert calibration_error(p, torch.tensor([0, 0, 0, 1])) == pytest.approx(expected, rel=1e-6)
    p = torch.tensor([[0.68, 0.32], [0.72, 0.28]])  # both above 10/15 and below 11/15
    assert calibration_error(p, torch.tensor([0, 1])) == pytest.approx(abs(0.7 - 0.5), rel=1e-6)


def test_scores_are_those_of_all_images_whatever_the_batch_and_the_mode_stays():
    data, model = bright_or_dark(), tiny(dropout=0.5)
    nn.init.normal_(model.head.weight)
    model.preprocess = Preprocess(8, 8, mean=data.mean, std=data.std)
    model.train()
    a, b = evaluate(model, data.train), evaluate(model, data.train, batch_size=7)
    assert model.training
    assert a.accuracy == b.accuracy and a.log_likelihood == pytest.approx(b.log_likelihood)
    logs = model.eval()(model.preprocess(data.train.images)).log_softmax(1)
    true = logs[torch.arange(64), data.train.labels]
    assert a.log_likelihood == pytest.approx(true.mean().item(), rel=1e-5)


def test_a_confusion_matrix_has_images_by_class_in_rows():
    taken = torch.tensor([0, 0, 1, 0, 0, 2, 0, 2])
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    assert torch.equal(confusion(torch.eye(3)[taken], labels), MATRIX)
    head, *rows = by_class(MATRIX, NAMES)
    assert head == ["class", "images", "right", "accuracy", "mostly taken for"]
    assert rows[0] == [NAMES[0], "4", "3", "0.7500", 'the "dog" (1)']
    assert rows[1] == [NAMES[1], "4", "0", "0.0000", "a cat, asleep (2)"]
    assert rows[2] == ["bird", "0", "0", "-", "-"]
    numbers, labels = torch.eye(3), torch.arange(3)
    data, broken = bright_or_dark(), tiny()
    broken.preprocess = Preprocess(8, 8, mean=data.mean, std=data.std)
    broken.head.bias.data[0] = torch.nan
    assert_refused([
        *((partial(confusion, numbers, labels + n), ValueError, "a class below 3 for each of 3") for n in (-1, 1)),
        (partial(evaluate, tiny(), data.test), ValueError, "a model with preprocess, .*: got a ViT without"),
        (partial(evaluate, broken, data.test), ValueError, "expected ViT to give finite numbers"),
    ])  # fmt: skip
    (_, *names), *rows = csv.reader(as_csv(matrix_rows(MATRIX, NAMES)).splitlines())
    assert names == NAMES
    assert rows == [[n, *map(str, row)] for n, row in zip(NAMES, MATRIX.tolist(), strict=True)]


def test_the_files_of_a_training_are_of_its_model_on_the_test_part(tmp_path):
    data, model = replace(bright_or_dark(), classes=("a,b", "caf\udce9")), tiny()
    results = train(model, data, Recipe(steps=12, batch_size=16), out=tmp_path)
    matrix = results.confusion
    predicted = model(model.preprocess(data.test.images)).argmax(1)
    counts = [((data.test.labels == i) & (predicted == j)).sum() for i in (0, 1) for j in (0, 1)]
    assert matrix.flatten().tolist() == counts
    assert matrix.trace().item() / matrix.sum().item() == pytest.approx(results.test.accuracy)
    row = f"caf\\udce9,{','.join(map(str, matrix[1].tolist()))}"
    assert row in (tmp_path / "confusion.csv").read_text()
    rows = list(csv.DictReader((tmp_path / "classes.csv").open()))
    assert [row["class"] for row in rows] == ["a,b", "caf\\udce9"]
    assert [int(row["right"]) for row in rows] == matrix.diag().tolist()
    card = (tmp_path / "card.md").read_text()
    assert f"| a,b | {rows[0]['images']} | {rows[0]['right']} |" in card
    assert "the moving average (decay 0.571) at the last step" in card  # (1 + 11) / (10 + 11)
    assert "12 steps are few for weights that begin at random: `--from cifar10_vit`" in card
