"""The runner: runs and their results, studies that train, and studies that measure."""

import json
import os
import signal
from dataclasses import replace
from functools import partial

import pytest
import torch

import minivit
from course.results import study as results_of
from studies.runner.pool import gather, result, weights_of
from studies.runner.run import Run, operations, spread, train_one
from studies.runner.storage import HERE, Store, differences
from studies.runner.study import Study, best, interval, score_differences
from studies.runner.survey import Survey
from vitlab.data import Split
from vitlab.training import Recipe, Stopped
from vitlab.training.run import Run as Training

RECIPE = Recipe(steps=4, batch_size=16)
RUN = Run("vit_8px", {"dim": 8, "depth": 1, "heads": 2}, RECIPE, data="DIGITS")


def changed(**recipe):
    return replace(RUN, recipe=replace(RECIPE, **recipe))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, "python -m studies small")


def test_the_key_of_a_run_is_the_same_everywhere_and_every_field_counts_in_it():
    assert Run("vit_8px", data="DIGITS").key == "01c81310f9a3"
    assert Run("vit_8px", {"dim": 8, "depth": 1}).key == Run("vit_8px", {"depth": 1, "dim": 8}).key
    others = [replace(RUN, **{field: value}) for field, value in {
        "model": "mixer_8px", "changes": {}, "data": "SHAPES", "fraction": 0.5, "random_labels": True,
        "removed": ("norm",), "teacher": "digits_vit",
    }.items()]  # fmt: skip
    assert len({run.key for run in (RUN, changed(seed=1), *others)}) == 9
    paths = list(HERE.result("x").parent.glob("*.json"))
    assert paths
    assert all(Run.of(json.loads(path.read_text())["run"]).key == path.stem for path in paths)


def test_parts_are_removed_before_training_in_whatever_order_they_are_named():
    a, b = (replace(RUN, removed=parts) for parts in (("norm", "residual"), ("residual", "norm")))
    assert a.key == b.key and a.fields["removed"] == ["norm", "residual"]
    whole, kept = RUN.create().state_dict(), a.create().state_dict()
    assert kept and not any("norm" in key for key in kept)
    assert all(torch.equal(kept[key], whole[key]) for key in kept)
    stored = train_one(a, keep=False)
    assert stored["run"]["removed"] == ["norm", "residual"] and stored["scores"]
    assert stored["parameters"] == sum(p.numel() for p in kept.values())


@pytest.mark.full
def test_what_exists_is_skipped_and_results_come_in_the_order_of_the_runs(store):
    runs = [changed(seed=1), RUN, changed(learning_rate=1e38)]
    stored = train_one(runs[0], store) | {"date": "of old"}
    store.result(runs[0].key).write_text(json.dumps(stored))
    first, second, lost, again = gather([*runs, runs[0]], workers=2, store=store)
    assert [one["key"] for one in (first, second, lost)] == [run.key for run in runs]
    assert first == again and first["date"] == "of old" != second["date"]
    assert lost["scores"] is None and "learning rate below 1e+38" in lost["diverged"]
    assert weights_of(RUN, store).exists()


def test_an_interrupted_run_goes_on_to_the_same_scores(store, tmp_path, monkeypatch):
    whole = train_one(RUN, store, keep=False)
    assert list(tmp_path.iterdir()) == [], "a check writes nothing"
    advance, steps = Training.advance, []

    def interrupted(self):
        steps.append(self.step)
        if len(steps) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self)

    monkeypatch.setattr(Training, "advance", interrupted)
    with pytest.raises(Stopped):
        train_one(RUN, store)
    assert result(RUN, store) is None
    (resumed,) = gather([RUN], store=store)
    assert steps == [0, 1, 2, 3]
    assert resumed["scores"] == whole["scores"] and result(RUN, store) == resumed


def test_random_labels_are_those_of_training_alone_and_depend_on_the_seed():
    true, drawn = RUN.load(), replace(RUN, random_labels=True).load()
    for part in ("validation", "test"):
        assert torch.equal(getattr(true, part).labels, getattr(drawn, part).labels)
    assert torch.equal(true.train.images, drawn.train.images)
    assert 0.05 < (true.train.labels == drawn.train.labels).double().mean() < 0.15  # by chance 0.1
    other = replace(changed(seed=1), random_labels=True).load()
    assert not torch.equal(other.train.labels, drawn.train.labels)
    assert torch.equal(replace(RUN, random_labels=True).load().train.labels, drawn.train.labels)


def test_short_epochs_are_scored_on_few_images_and_the_end_on_all(monkeypatch):
    monkeypatch.setattr("studies.runner.run.WATCHED", 20)
    for fraction, watched in ((0.5, 20), (1.0, 179)):
        stored = train_one(replace(RUN, fraction=fraction), keep=False)
        assert stored["curve"][-1]["validation"]["pictures"] == watched
        assert stored["scores"]["validation"]["pictures"] == 179


def test_some_images_of_a_part_in_the_order_of_its_classes_are_of_all_classes():
    part = Split(torch.zeros(100, 1, 8, 8, dtype=torch.uint8), torch.arange(100) // 10)
    assert spread(part, 20).labels.bincount().tolist() == [2] * 10
    assert spread(part, 7).labels.tolist() == [0, 1, 3, 5, 6, 8, 9]
    assert torch.equal(spread(part, 1000).labels, part.labels)


def test_operations_are_those_of_all_matrix_products_also_within_the_fused_kernel():
    tokens, dim, hidden, depth, patch, classes = 64, 128, 256, 6, 3 * 4 * 4, 10
    block = 4 * tokens * dim**2 + 2 * tokens**2 * dim + 2 * tokens * dim * hidden
    expected = tokens * patch * dim + depth * block + dim * classes
    assert operations(minivit.create("vit_32px", pool="mean")) == expected


def seeds(name, run):
    return [replace(run, recipe=replace(run.recipe, seed=seed)) for seed in (0, 1)]


def test_a_study_is_trained_listed_and_rechecked(store, tmp_path, capsys):
    rates = {"vit": (1e-3, 1e-2), "lost": (1e38,)}
    runs = {name: [changed(learning_rate=r) for r in some] for name, some in rates.items()}
    study = Study("small", runs, seeds)
    assert study.listed(store).count("to measure") == 2 and study.recheck("", store) == 2
    assert list(tmp_path.iterdir()) == []

    study.carry_out(store, ["vit"])
    study.carry_out(store)
    path = store.table("small")
    table = json.loads(path.read_text())
    vit, lost = (table["rows"][name] for name in ("vit", "lost"))
    assert vit["runs"][0] in vit["search"] and len(vit["runs"]) == 2
    assert vit["search"][vit["runs"][0]] == max(vit["search"].values())
    assert vit["accuracy"]["over"] == "seeds" and len(vit["accuracy"]["values"]) == 2
    assert lost["diverged"] == 1 and lost["runs"] == [] and "accuracy" not in lost
    assert table["command"] == "python -m studies small" and table["seeds"] == [0, 1]
    assert study.listed(store).count("measured") == 2 and vit["runs"][1] in study.listed(store)

    before = path.stat().st_mtime_ns
    study.carry_out(store)  # there is nothing to do
    assert path.stat().st_mtime_ns == before and "diverged" in capsys.readouterr().out

    key = vit["runs"][1]
    assert study.recheck(key[:6], store) == 0
    stored = json.loads(store.result(key).read_text())
    stored["scores"]["test"]["log_likelihood"] += 1e-6
    store.result(key).write_text(json.dumps(stored))
    assert study.recheck(key, store) == 1 and "test log_likelihood" in capsys.readouterr().out
    assert study.recheck("", store) == 0 and study.recheck("nothing", store) == 2


def scored(accuracy, likelihood=-1.0):
    return {"scores": {"validation": {"accuracy": accuracy, "log_likelihood": likelihood}}}


def test_the_best_is_chosen_by_accuracy_then_likelihood_and_intervals_are_wilsons_and_students():
    lost = {"scores": None}
    assert best([scored(0.5), lost, scored(0.7), scored(0.6)]) == 2
    assert best([scored(0.7, -2.0), scored(0.7, -1.0)]) == 1
    assert best([lost, lost]) is None
    assert interval([0.5], 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert interval([0.4, 0.5, 0.6], 100) == pytest.approx((0.2516, 0.7484), abs=1e-4)


def test_figures_may_differ_by_a_tolerance_and_on_another_machine_accuracy_alone():
    def on(machine, accuracy):
        scores = {"test": {"accuracy": accuracy, "log_likelihood": -accuracy}}
        return {"scores": scores if accuracy else None, "machine": machine, "torch": "2"}

    cases = [("a", 0.5, 0), ("a", 0.51, 2), ("b", 0.51, 0), ("b", 0.53, 1), ("a", 0, 1)]
    for machine, accuracy, lines in cases:
        assert len(score_differences(on("a", 0.5), on(machine, accuracy))) == lines
    assert score_differences(on("a", 0), on("b", 0)) == []
    for new, expected in (
        ({"a": [1.0, 2.04]}, []),
        ({"a": [1.0, 2.2]}, [" a 1: 2, now 2.2"]),
        ({"a": [1.0]}, [" a: [1.0, 2.0], now [1.0]"]),
        ({"b": [1.0, 2.0]}, [": {'a': [1.0, 2.0]}, now {'b': [1.0, 2.0]}"]),
        ({"a": [1.0, None]}, [" a 1: 2.0, now None"]),
    ):
        assert differences({"a": [1.0, 2.0]}, new, {"rel_tol": 0.03}) == expected


def survey(asked, answer=0.1):
    """Three rows, the second out of reach; notes what it is asked for."""

    def measure(name):
        asked.append(name)
        if name == "far":
            raise FileNotFoundError("its weights are not in the cache")
        if answer is None and name == "last":
            raise KeyboardInterrupt
        return {"psnr": [answer, 20.0], "met": None}

    return Survey("small", {name: partial(measure, name) for name in ("near", "far", "last")})


def test_a_survey_measures_what_is_missing_and_keeps_what_it_has(store, tmp_path, capsys):
    asked = []
    assert survey(asked).listed(store).count("to measure") == 3 and not list(tmp_path.iterdir())
    survey(asked).carry_out(store, ["last"])
    survey(asked).carry_out(store)
    survey(asked).carry_out(store)
    assert asked == ["last", "near", "far", "far"]  # it may be near now
    table = results_of("small", tmp_path / "book/results")
    assert list(table.rows) == ["near", "last"] and "studies small" in table.provenance
    assert table.rows["near"]["psnr"] == [0.1, 20.0] and table.rows["near"]["seconds"] >= 0
    assert "not here: its weights are not in the cache" in capsys.readouterr().out


def test_an_interrupted_survey_has_written_the_rows_before_and_a_row_is_rechecked(store, capsys):
    with pytest.raises(KeyboardInterrupt):
        survey([], answer=None).carry_out(store, ["last", "near"])
    assert not store.table("small").exists()
    with pytest.raises(KeyboardInterrupt):
        survey([], answer=None).carry_out(store, ["far", "near", "last"])
    assert survey([]).stored(store).keys() == {"near"} and survey([]).recheck("far", store) == 2
    survey([]).carry_out(store, ["near", "last"])
    assert survey([]).recheck("", store) == 0
    assert survey([], answer=0.101).recheck("last", store) == 1
    assert "psnr 0: 0.1, now 0.101" in capsys.readouterr().out
