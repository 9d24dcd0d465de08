import json
from dataclasses import replace

import pytest

from studies.runner.command import NAMES, command, load
from studies.runner.cost import PICTURES
from studies.runner.pool import result
from studies.runner.run import Run
from studies.runner.storage import HERE, Place
from studies.runner.study import Study, scores_compared
from studies.runner.table import best, interval
from vitlab.data import load_data
from vitlab.training import Recipe


def run(rate=1e-3, seed=0):
    recipe = Recipe(steps=3, batch_size=16, learning_rate=rate, seed=seed)
    return Run("vit_8px", {"dim": 8, "depth": 1, "heads": 2}, recipe, data="DIGITS")


def seeds(name, chosen):
    return [replace(chosen, recipe=replace(chosen.recipe, seed=seed)) for seed in (0, 1)]


STUDY = Study("small", {"vit": [run(1e-3), run(1e-2)], "lost": [run(1e38)]}, seeds)


@pytest.mark.full
@pytest.mark.parametrize(
    "study", [pytest.param(load(n), id=n) for n in NAMES if isinstance(load(n), Study)]
)
def test_every_study_runs_to_its_end_and_leaves_the_repository_alone(study, capsys):
    assert command(study, ["--smoke"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in study.candidates) and "the figures agree" in printed
    stored = [json.loads(path.read_text()) for path in HERE.result("x").parent.glob("*.json")]
    assert all(found["run"]["recipe"]["steps"] != 2 for found in stored)


@pytest.mark.full
def test_a_study_is_listed_trained_and_rechecked(tmp_path, capsys):
    place = Place(tmp_path, pictures=50)
    assert command(STUDY, ["--list"], place) == 0
    listed = capsys.readouterr().out
    assert listed.count("to train") == 5 and "5 runs" in listed  # lost has two seeds to come
    assert list(tmp_path.iterdir()) == []

    assert command(STUDY, ["--workers", "1"], place) == 0
    found = json.loads((tmp_path / "book/results/small.json").read_text())
    row = found["rows"]["vit"]
    assert row["runs"][0] in row["search"] and len(row["runs"]) == 2
    assert row["search"][row["runs"][0]] == max(row["search"].values())
    assert row["accuracy"]["over"] == "seeds" and len(row["accuracy"]["values"]) == 2
    assert found["rows"]["lost"]["diverged"] == 1 and "accuracy" not in found["rows"]["lost"]
    assert found["command"] == "python -m studies small" and found["seeds"] == [0, 1]
    assert command(STUDY, [], place) == 0
    assert "diverged" in capsys.readouterr().out.splitlines()[-1]  # and nothing was trained

    key = row["runs"][1]
    assert command(STUDY, ["--recheck", key[:6]], place) == 0
    path = place.result(key)
    stored = json.loads(path.read_text())
    stored["scores"]["test"]["log_likelihood"] += 1e-6
    path.write_text(json.dumps(stored))
    assert command(STUDY, ["--recheck", key], place) == 1
    assert "test log_likelihood" in capsys.readouterr().out
    assert command(STUDY, ["--recheck"], place) == 0
    assert command(STUDY, ["--recheck", "nothing"], place) == 2
    assert result(run(), place)


def scored(accuracy, likelihood=-1.0):
    return {"scores": {"validation": {"accuracy": accuracy, "log_likelihood": likelihood}}}


def test_the_best_is_chosen_by_validation_accuracy_then_likelihood_never_among_the_diverged():
    lost = {"scores": None}
    assert best([scored(0.5), lost, scored(0.7), scored(0.6)]) == 2
    assert best([scored(0.7, -2.0), scored(0.7, -1.0)]) == 1
    assert best([lost, lost]) is None


def test_another_machine_may_differ_by_the_tolerance_in_accuracy_alone():
    def found(accuracy, machine):
        scores = {"test": {"accuracy": accuracy, "log_likelihood": -accuracy}}
        return {"scores": scores, "machine": machine, "torch": "2", "diverged": None}

    assert scores_compared(found(0.5, "a"), found(0.5, "a"), 0.02) == []
    assert len(scores_compared(found(0.5, "a"), found(0.51, "a"), 0.02)) == 2
    assert scores_compared(found(0.5, "a"), found(0.51, "b"), 0.02) == []
    assert len(scores_compared(found(0.5, "a"), found(0.53, "b"), 0.02)) == 1
    lost = {"scores": None, "diverged": "at step 3", "machine": "a", "torch": "2"}
    assert (
        len(scores_compared(found(0.5, "a"), lost, 0.02)) == 1
        and scores_compared(lost, lost, 0.02) == []
    )


def test_the_interval_of_one_accuracy_is_wilsons_and_of_several_students():
    assert interval([0.5], 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert interval([0.4, 0.5, 0.6], 100) == pytest.approx((0.2516, 0.7484), abs=1e-4)


@pytest.mark.parametrize("name", ["DIGITS", pytest.param("SHAPES", marks=pytest.mark.full)])
def test_the_costs_count_the_images_that_there_are(name):
    data = load_data(name)
    assert PICTURES[name] == (len(data.train), len(data.validation), len(data.test))
