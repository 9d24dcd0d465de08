import json

import pytest

from course.results import study
from studies.runner.command import NAMES, command, load
from studies.runner.storage import Place, compared
from studies.runner.survey import NotHere, Survey
from studies.shared import inputs


@pytest.mark.parametrize(
    "survey",
    [
        pytest.param(load(name), id=name, marks=pytest.mark.full)
        for name in NAMES
        if isinstance(load(name), Survey)
    ],
)
def test_every_survey_runs_to_its_end(survey, capsys):
    assert command(survey, ["--smoke"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in survey.rows)


def rows(asked, answer=0.1):
    """A survey of three rows, the second out of reach, that notes what it is asked for."""

    def measure(name, rehearsal):
        asked.append((name, rehearsal))
        if name == "far":
            raise NotHere("its weights are not in the cache")
        return {"psnr": [answer, 20.0], "met": None}

    return Survey("small", ["near", "far", "last"], measure)


def test_a_survey_measures_what_is_missing_and_keeps_what_it_has(tmp_path, capsys):
    place, asked = Place(tmp_path), []
    assert command(rows(asked), ["--list"], place) == 0
    assert capsys.readouterr().out.count("to measure") == 3 and not list(tmp_path.iterdir())
    assert command(rows(asked), ["--rows", "last"], place) == 0 and asked == [("last", False)]
    assert command(rows(asked), [], place) == 0
    assert asked == [("last", False), ("near", False), ("far", False)]
    assert command(rows(asked), [], place) == 0 and asked[3:] == [
        ("far", False)
    ]  # it may be near now

    found = study("small", tmp_path / "book/results")
    assert list(found.rows) == ["near", "far", "last"] and "studies small" in found.provenance
    assert found.rows["near"]["psnr"] == [0.1, 20.0] and found.rows["near"]["seconds"] >= 0
    assert found.rows["far"]["not_here"] == "its weights are not in the cache"
    assert "far" in capsys.readouterr().out


def test_an_interrupted_survey_has_written_the_rows_before(tmp_path):
    def measure(name, rehearsal):
        if name == "last":
            raise KeyboardInterrupt
        return {"psnr": 1.0}

    with pytest.raises(KeyboardInterrupt):
        command(Survey("small", ["near", "last"], measure), [], Place(tmp_path))
    assert list(json.loads((tmp_path / "book/results/small.json").read_text())["rows"]) == ["near"]


def test_a_row_is_rechecked(tmp_path, capsys):
    place = Place(tmp_path)
    assert command(rows([]), ["--recheck"], place) == 2
    command(rows([]), [], place)
    assert command(rows([]), ["--recheck"], place) == 0
    assert command(rows([], answer=0.101), ["--recheck", "last"], place) == 1
    assert "psnr 0: 0.1, now 0.101" in capsys.readouterr().out


def test_a_rehearsal_leaves_nothing(tmp_path):
    asked = []
    assert command(rows(asked), ["--smoke"], Place(tmp_path)) == 0
    assert all(rehearsal for _, rehearsal in asked) and len(asked) == 3
    assert not list(tmp_path.iterdir())


def test_what_is_not_on_this_machine_is_out_of_reach(monkeypatch, tmp_path):
    with pytest.raises(NotHere, match="imagenet_vit does not come with the package"):
        inputs.model("imagenet_vit")
    monkeypatch.setenv("MINIVIT_CIFAR10", str(tmp_path / "empty"))
    with pytest.raises(NotHere, match="empty"):
        inputs.pictures("CIFAR10", 4)


def test_images_that_surveys_get_are_of_all_classes_and_of_the_part_asked_for():
    test, train = inputs.pictures("DIGITS", 100), inputs.pictures("DIGITS", 100, "train")
    assert len(test) == len(train) == 100 and not test.images.equal(train.images)
    assert set(test.labels.tolist()) == set(range(10))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ({"a": [1.0, 2.04]}, None),
        ({"a": [1.0, 2.2]}, "a 1: 2, now 2.2"),
        ({"a": [1.0]}, "a: [1.0, 2.0], now [1.0]"),
        ({"b": [1.0, 2.0]}, "{'a': [1.0, 2.0]}, now {'b': [1.0, 2.0]}"),
        ({"a": [1.0, None]}, "a 1: 2.0, now None"),
    ],
)
def test_figures_are_compared_within_a_tolerance(new, said):
    differences = compared({"a": [1.0, 2.0]}, new, {"rel_tol": 0.03})
    assert (said in differences[0]) if said else not differences
