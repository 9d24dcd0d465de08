"""What several studies measure, and what they measure it on."""

import pytest
import torch

import minivit
from minivit.preprocessing import Preprocess
from studies.data_size import transfer
from studies.runner.survey import over_seeds, plain
from studies.shared import inputs
from studies.shared.digit_models import fraction_of, summary
from studies.shared.training import features
from studies.small_trainings import confidence
from tests.vitlab.training.small import bright_or_dark
from vitlab.data import Split, load_data
from vitlab.instruments import Localisation

GENERATOR = torch.Generator().manual_seed(0)
IMAGES = torch.randint(0, 256, (6, 3, 32, 32), dtype=torch.uint8, generator=GENERATOR)


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = minivit.create("vit_32px", dim=16, depth=2, heads=2, patch_size=(8, 16))
    model.preprocess = Preprocess((32, 32), resize=(32, 32))
    return model.eval()


def test_features_are_what_the_head_reads_and_the_head_comes_back(model):
    torch.nn.init.normal_(model.head.weight)
    read = torch.from_numpy(features(model, model.preprocess(IMAGES)))
    logits = model(model.preprocess(IMAGES))
    torch.testing.assert_close(model.head(read), logits)


def test_transfer_asks_whether_a_linear_map_tells_classes_apart(model, monkeypatch):
    monkeypatch.setattr("studies.data_size.loaded", lambda name: bright_or_dark(60, 3, 32))
    before = {key: value.clone() for key, value in model.state_dict().items()}
    assert transfer(model) > 0.9
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    torch.nn.init.zeros_(model.patch_embedding.projection.weight)  # all images look the same
    assert transfer(model) == pytest.approx(0.5)


def test_a_model_that_knows_nothing_is_as_sure_as_chance(model):
    part = Split(IMAGES, torch.zeros(6, dtype=torch.int64))
    assert confidence(model, part) == pytest.approx(0.1)
    model.head.bias.data[3] = 100.0
    assert confidence(model, part) == pytest.approx(1.0)


def test_inner_and_outer_places_are_told_apart():
    own = torch.zeros(3, 3)
    own[1, 1] = 0.8  # the one inner store
    table = torch.diag(own.flatten()).view(3, 3, 3, 3) - 0.1
    means = summary(Localisation(table, torch.zeros(0, 3, 3)))
    assert means["inner"] == pytest.approx(0.8) and means["outer"] == pytest.approx(0, abs=1e-6)
    assert means["own"] == pytest.approx(0.8 / 9 - 0.1, abs=1e-6)
    assert means["inner hits"] == means["outer hits"] == 1  # all patches are alike to the others


def test_figures_are_rounded_however_deep_they_lie_and_stand_in_lists_over_seeds():
    figures = {"a": [torch.tensor([0.12346, 1.0]), 0.33333], "b": {"c": 2 / 3, "d": 7}}
    assert plain(figures) == {"a": [[0.1235, 1.0], 0.3333], "b": {"c": 0.6667, "d": 7}}
    assert plain([1234.567, float("nan")], ".4g") == [1235.0, None]
    assert over_seeds([{"a": 1, "b": [2]}, {"a": 3, "b": [4]}]) == {"a": [1, 3], "b": [[2], [4]]}


def test_a_fraction_of_the_digits_differs_by_seed_and_not_in_preprocessing():
    whole = load_data("DIGITS")
    a, b = fraction_of(whole, 0.1, 0), fraction_of(whole, 0.1, 1)
    assert len(a.train) == pytest.approx(len(whole.train) / 10, rel=0.1)
    assert a.mean == b.mean == whole.mean and a.std == whole.std
    assert not torch.equal(a.train.images, b.train.images)


def test_images_are_of_all_classes_and_their_part_or_out_of_reach(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIVIT_CIFAR10", str(tmp_path / "empty"))
    with pytest.raises(FileNotFoundError, match="empty"):
        inputs.pictures("CIFAR10", 4)
    test, train = inputs.pictures("DIGITS", 100), inputs.pictures("DIGITS", 100, "train")
    assert len(test) == len(train) == 100 and not test.images.equal(train.images)
    assert set(test.labels.tolist()) == set(range(10))
