import json
import os
import signal
from dataclasses import replace

import pytest
import torch

from studies.runner.pool import gather, result, trained
from studies.runner.run import Run, spread, train_one
from studies.runner.storage import HERE, Place
from vitlab.data import Split
from vitlab.training import Recipe, Stopped
from vitlab.training.run import Run as Training

RECIPE = Recipe(steps=4, batch_size=16)
RUN = Run("vit_8px", {"dim": 8, "depth": 1, "heads": 2}, RECIPE, data="DIGITS")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, pictures=50)


def test_the_key_of_a_run_is_the_same_in_every_process_and_release():
    assert Run("vit_8px", data="DIGITS").key == "01c81310f9a3"
    assert Run("vit_8px", {"dim": 8, "depth": 1}).key == Run("vit_8px", {"depth": 1, "dim": 8}).key


def test_every_field_of_a_run_counts_in_its_key():
    others = [
        replace(RUN, model="mixer_8px"),
        replace(RUN, changes={}),
        replace(RUN, data="SHAPES"),
        replace(RUN, recipe=replace(RECIPE, seed=1)),
        replace(RUN, fraction=0.5),
        replace(RUN, random_labels=True),
        replace(RUN, removed=("norm",)),
    ]
    assert len({run.key for run in (RUN, *others)}) == 8


def test_parts_are_removed_before_training_in_whatever_order_they_are_named():
    a, b = (replace(RUN, removed=parts) for parts in (("norm", "residual"), ("residual", "norm")))
    assert a.key == b.key and a.fields["removed"] == ["norm", "residual"]
    whole, model = RUN.create(), a.create()
    kept = model.state_dict()
    assert kept and not any("norm" in key for key in kept)
    assert all(torch.equal(kept[key], whole.state_dict()[key]) for key in kept)
    found = train_one(a, Place(pictures=50), keep=False)
    assert found["run"]["removed"] == ["norm", "residual"] and found["scores"]
    assert found["parameters"] == sum(p.numel() for p in kept.values())


def test_every_stored_result_stands_under_the_key_of_its_run():
    paths = list(HERE.result("x").parent.glob("*.json"))
    assert paths
    for path in paths:
        fields = json.loads(path.read_text())["run"]
        assert Run(**fields | {"recipe": Recipe(**fields["recipe"])}).key == path.stem


def test_what_exists_is_skipped_and_results_come_in_the_order_of_the_runs(place):
    runs = [replace(RUN, recipe=replace(RECIPE, seed=seed)) for seed in (1, 0)]
    stored = train_one(runs[0], place) | {"date": "of old"}
    place.result(runs[0].key).write_text(json.dumps(stored))
    found = gather([*runs, runs[0]], place=place)
    assert [one["key"] for one in found] == [runs[0].key, runs[1].key, runs[0].key]
    assert found[0]["date"] == "of old" != found[1]["date"]
    assert trained(runs[1], place).exists()


def test_an_interrupted_run_goes_on_to_the_same_scores(place, tmp_path, monkeypatch):
    whole = train_one(RUN, replace(place, root=tmp_path / "whole"))
    advance, steps = Training.advance, []

    def interrupted(self):
        steps.append(self.step)
        if len(steps) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self)

    monkeypatch.setattr(Training, "advance", interrupted)
    with pytest.raises(Stopped):
        train_one(RUN, place)
    assert result(RUN, place) is None
    resumed = train_one(RUN, place)
    assert steps == [0, 1, 2, 3]
    assert resumed["scores"] == whole["scores"] and result(RUN, place) == resumed


def test_a_check_writes_nothing_and_finds_the_same(place, tmp_path):
    found = train_one(RUN, place, keep=False)
    assert list(tmp_path.iterdir()) == []
    assert found["scores"] == train_one(RUN, place)["scores"]


@pytest.mark.full
def test_a_rate_that_is_too_large_is_a_result_too(place):
    run = replace(RUN, recipe=replace(RECIPE, learning_rate=1e38))
    (found,) = gather([run], place=place)
    assert found["scores"] is None and "learning rate below 1e+38" in found["diverged"]


def test_random_labels_are_those_of_training_alone_and_depend_on_the_seed():
    true, drawn = RUN.load(), replace(RUN, random_labels=True).load()
    for part in ("validation", "test"):
        assert torch.equal(getattr(true, part).labels, getattr(drawn, part).labels)
    assert torch.equal(true.train.images, drawn.train.images)
    agree = (true.train.labels == drawn.train.labels).double().mean()
    assert 0.05 < agree < 0.15  # one in ten by chance
    other = replace(RUN, recipe=replace(RECIPE, seed=1), random_labels=True).load()
    assert not torch.equal(other.train.labels, drawn.train.labels)
    assert torch.equal(replace(RUN, random_labels=True).load().train.labels, drawn.train.labels)


def test_short_epochs_are_scored_on_few_images_and_the_end_on_all(tmp_path, monkeypatch):
    monkeypatch.setattr("studies.runner.run.WATCHED", 20)
    for fraction, watched in ((0.5, 20), (1.0, 40)):
        run = replace(RUN, fraction=fraction)
        found = train_one(run, Place(tmp_path, pictures=40))
        assert found["curve"][-1]["validation"]["pictures"] == watched
        assert found["scores"]["validation"]["pictures"] == 40


def test_some_images_of_a_part_in_the_order_of_its_classes_are_of_all_classes():
    images = torch.zeros(100, 1, 8, 8, dtype=torch.uint8)
    part = Split(images, torch.arange(100) // 10)
    assert spread(part, 20).labels.bincount().tolist() == [2] * 10
    assert spread(part, 7).labels.tolist() == [0, 1, 3, 5, 6, 8, 9]
    assert torch.equal(spread(part, 1000).labels, part.labels)
