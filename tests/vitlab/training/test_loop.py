import itertools
import json
import os
import signal
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pytest
import torch

import minivit
from tests.minivit.conftest import full_disk
from tests.parity import close
from tests.refusals import assert_refused
from tests.vitlab.training.small import TINY, bright_or_dark, tiny
from vitlab.training import Recipe, Stopped, train
from vitlab.training.run import Run

AUGMENTED = {"mixup": 0.2, "shift": 0.2, "flip": True, "operations": 2, "cutout": 0.3}
# 5 steps an epoch, and 4 in the last
RECIPE = Recipe(steps=14, batch_size=12, learning_rate=5e-3, **AUGMENTED)
MODEL = "model.safetensors"


def lines_of(folder):
    """The log without what depends on the clock."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if "second" not in k} for line in lines]


@pytest.fixture
def at_step(monkeypatch):
    """Does something before a step of a training, but not of the trial that times a step."""
    advance = Run.advance

    def patch(step, action):
        def advancing(run):
            if run.step == step and run.steps > 10:
                action(run)
            return advance(run)

        monkeypatch.setattr(Run, "advance", advancing)

    yield patch
    monkeypatch.undo()


def power_cut(run):
    raise EOFError("the power went")


def broken_off(at_step, step, folder, model=None, recipe=RECIPE):
    """A training that ends before a step."""
    at_step(step, power_cut)
    with pytest.raises(EOFError):
        train(model or tiny(), bright_or_dark(), recipe, out=folder, save_every=0)
    at_step(-1, power_cut)


def spoilt(value):
    def spoil(run):
        run.model.head.weight.data[0, 0] = value

    return spoil


def test_a_model_learns_and_is_ready_to_use_and_the_callers_random_numbers_are_left_alone():
    data, model = bright_or_dark(), tiny(dropout=0.1)
    state = torch.get_rng_state()
    results = train(model, data, Recipe(steps=60, batch_size=16, learning_rate=1e-2))
    assert torch.equal(torch.get_rng_state(), state)
    assert results.test.accuracy == results.validation.accuracy == 1
    assert results.steps == 60 and len(results.lines) == 15 and results.seconds > 0
    assert results.lines[-1]["loss"] < 0.4 < 0.6 < results.lines[0]["loss"]
    assert not model.training and model.classes == ("dark", "bright") and model.licence == "CC0"
    assert torch.equal(model(model.preprocess(data.test.images)).argmax(1), data.test.labels)


def test_every_image_is_read_once_an_epoch_in_an_order_of_its_own(monkeypatch):
    batches, sizes, forward = [], [], minivit.ViT.forward
    monkeypatch.setattr("vitlab.training.run.augment", lambda x, *rest: batches.append(x) or x)
    monkeypatch.setattr(minivit.ViT, "forward", lambda m, x: sizes.append(len(x)) or forward(m, x))
    data = bright_or_dark(n=60)
    train(tiny(), data, Recipe(epochs=2, batch_size=20))
    first, second, all_ = torch.cat(batches[:3]), torch.cat(batches[3:]), data.train.images / 255
    rows = [sorted(images.flatten(1).tolist()) for images in (first, second, all_)]
    assert rows[0] == rows[1] == rows[2]
    assert not torch.equal(first, second) and not torch.equal(first, all_)
    assert max(sizes) == 20  # when it scores, too


def test_a_folder_holds_the_model_its_card_the_log_and_the_state(tmp_path):
    data, model, folder = bright_or_dark(), tiny(dropout=0.1), tmp_path / "run"
    results = train(model, data, RECIPE, out=folder, command="python -m vitlab ...")
    names = {MODEL, "card.md", "log.jsonl", "state.pt", "confusion.csv", "classes.csv"}
    assert {p.name for p in folder.iterdir()} == names
    back = minivit.load(str(folder / MODEL))
    close(back.state_dict(), model.state_dict(), 0)
    assert back.preprocess == model.preprocess and tuple(back.classes) == data.classes
    *epochs, final = lines_of(folder)
    assert [(line["epoch"], line["step"]) for line in epochs] == [(1, 5), (2, 10), (3, 14)]
    scores = {"validation": asdict(results.validation), "test": asdict(results.test)}
    assert final == {"step": 14, **scores}
    card = (folder / "card.md").read_text()
    for text in (
        "# ViT trained on noise", "dark, bright", "CC0", "python -m vitlab ...", "seed 0", "mixup = 0.2",
        f"{results.test.accuracy:.4f} | {results.test.log_likelihood:.4f} | {results.test.calibration_error:.4f}",
        f"torch {torch.__version__}", f"{sum(p.numel() for p in model.parameters()):,} parameters",
        "moving average (decay 0.609)", "steps = 14", "dim = 8",
        "64 images to train on, 16 to validate, 20 to test; 0 damaged",
    ):  # fmt: skip
        assert text in card, text
    assert "epochs = " not in card and "Frozen" not in card


@pytest.mark.parametrize(
    "step",
    [pytest.param(1, marks=pytest.mark.full), 5, 7, pytest.param(13, marks=pytest.mark.full)],
)
@pytest.mark.parametrize("name", ["vit_8px", "resnet_8px"])
def test_a_training_that_broke_off_goes_on_to_the_same_bits(tmp_path, at_step, name, step):
    def fresh():
        torch.manual_seed(0)
        changes = TINY | {"dropout": 0.2, "stochastic_depth": 0.1}
        return minivit.create(name, **(changes if name == "vit_8px" else {"classes": 2}))

    data, whole, broken = bright_or_dark(), tmp_path / "whole", tmp_path / "broken"
    expected = train(fresh(), data, RECIPE, out=whole)
    broken_off(at_step, step, broken, fresh())
    (broken / ".state.pt.abc").mkdir()  # as a kill leaves it
    results = train(fresh(), data, RECIPE, out=broken, resume=True)
    assert (results.test, results.validation) == (expected.test, expected.validation)
    assert lines_of(broken) == lines_of(whole) and not list(broken.glob(".*"))
    assert (broken / MODEL).read_bytes() == (whole / MODEL).read_bytes()


def test_a_finished_training_is_not_repeated_and_names_cannot_break_its_card(tmp_path, at_step):
    data = replace(bright_or_dark(), classes=(np.str_("a|b\nc"), "caf\udce9"))
    recipe = replace(RECIPE, learning_rate=np.float64(5e-3), epochs=np.float64(2))
    first, again = tiny(), tiny()
    results = train(first, data, recipe, out=tmp_path)
    assert "2 classes: a\\|b\\nc, caf\\udce9." in (tmp_path / "card.md").read_text(encoding="utf-8")
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    (tmp_path / MODEL).unlink()  # as a kill may leave it
    at_step(0, power_cut)
    assert train(again, data, recipe, out=tmp_path, resume=True) == results
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before
    assert torch.equal(first.head.weight, again.head.weight) and not again.training


def test_another_training_does_not_go_on_from_here_and_nothing_is_written_over(tmp_path):
    data, other = bright_or_dark(), bright_or_dark()
    other.test.images[0, 0, 0, 0] ^= 1
    train(tiny(), data, RECIPE, out=tmp_path)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}

    def resumed(model=tiny, data=data, recipe=RECIPE, resume=True):
        return lambda: train(model(), data, recipe, out=tmp_path, resume=resume)

    recipe = replace(RECIPE, seed=4, mixup=0.0)
    mixer = partial(minivit.create, "mixer_8px", classes=2)
    assert_refused([
        (resumed(recipe=recipe), ValueError, "mixup is 0.2 there, 0.0 .*seed is 0 there, 4"),
        (resumed(lambda: tiny(depth=1)), ValueError, "the model's depth is 2 there, 1 here"),
        (resumed(mixer), ValueError, "family is 'ViT'"),
        (resumed(data=bright_or_dark(n=70)), ValueError, r"is \[64, 16, 20\] there, \[70, 16"),
        (resumed(data=other), ValueError, "the data's content is"),
        (resumed(resume=False), ValueError, f"already holds state.pt and {MODEL}: resume"),
    ])  # fmt: skip
    assert {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == before
    state = tmp_path / "state.pt"
    state.write_bytes(state.read_bytes()[:1000])
    assert_refused([(resumed(), ValueError, "the whole state of a training at .*state.pt")])
    assert state.stat().st_size == 1000
    state.unlink()
    assert_refused([(resumed(), ValueError, f"already holds {MODEL}")])


def test_a_folder_in_which_a_training_runs_is_refused_and_free_at_its_end(tmp_path, at_step):
    def meanwhile(run):
        with pytest.raises(ValueError, match="another training is writing in"):
            train(tiny(), bright_or_dark(), RECIPE, out=tmp_path, resume=True)
        raise EOFError

    at_step(3, meanwhile)
    with pytest.raises(EOFError):
        train(tiny(), bright_or_dark(), RECIPE, out=tmp_path)
    assert not list(tmp_path.iterdir())
    at_step(-1, meanwhile)
    train(tiny(), bright_or_dark(), RECIPE, out=tmp_path)


@pytest.mark.parametrize("step", [7, 13])
def test_what_is_not_finite_stops_with_advice_and_keeps_the_last_state(tmp_path, at_step, step):
    data = bright_or_dark()
    at_step(0, spoilt(float("nan")))
    with pytest.raises(FloatingPointError):  # and leaves the folder to another recipe
        train(tiny(), data, replace(RECIPE, seed=5), out=tmp_path)
    at_step(step, spoilt(float("nan")))
    with pytest.raises(FloatingPointError, match=rf"step {step} of 14: try a .*below 0.005"):
        train(tiny(), data, RECIPE, out=tmp_path, save_every=0)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state["step"] == step and not (tmp_path / MODEL).exists()
    assert all(tensor.isfinite().all() for tensor in state["weights"].values())
    at_step(-1, power_cut)
    train(tiny(), data, RECIPE, out=tmp_path, resume=True)


def test_weights_that_are_not_finite_are_not_kept_and_a_gradient_never_reaches_them():
    model = tiny()
    model.head.weight.register_hook(lambda grad: grad * float("inf"))
    with pytest.raises(FloatingPointError, match="gradient is not finite"):
        train(model, bright_or_dark(), RECIPE)
    assert all(p.isfinite().all() for p in model.parameters())
    run = Run(tiny(), bright_or_dark(), RECIPE)
    spoilt(float("inf"))(run)
    with pytest.raises(FloatingPointError, match="a weight is not finite after step 0 of 14"):
        run.state_dict()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_stops(tmp_path, at_step, number):
    data, before = bright_or_dark(), signal.getsignal(number)
    at_step(6, lambda run: os.kill(os.getpid(), number))
    with pytest.raises(Stopped, match="after step 7 of 14") as stopped:
        train(tiny(), data, RECIPE, out=tmp_path / "a")
    assert stopped.value.signum == number and signal.getsignal(number) is before
    at_step(-1, power_cut)
    train(tiny(), data, RECIPE, out=tmp_path / "a", resume=True)
    train(tiny(), data, RECIPE, out=tmp_path / "b")
    assert (tmp_path / "a" / MODEL).read_bytes() == (tmp_path / "b" / MODEL).read_bytes()


def test_a_full_disk_leaves_the_last_state_whole(tmp_path, at_step):
    """The operating system refuses: a file may have 100 bytes from step 6 on."""
    data = bright_or_dark()
    with ExitStack() as stack:
        at_step(6, lambda run: stack.enter_context(full_disk(100)))
        train(tiny(), data, RECIPE, out=tmp_path, save_every=0)
    assert torch.load(tmp_path / "state.pt", weights_only=True)["step"] == 6
    assert not list(tmp_path.glob(".*"))
    at_step(-1, power_cut)
    train(tiny(), data, RECIPE, out=tmp_path, resume=True)


def test_minutes_become_steps_whose_number_stays_on_resuming(tmp_path, monkeypatch, at_step):
    recipe = Recipe(minutes=0.01, batch_size=12)
    ticks = itertools.count()  # a clock on which a step takes 10 ms, however busy the machine
    with monkeypatch.context() as patch:
        patch.setattr("vitlab.training.run.time.perf_counter", lambda: next(ticks) / 100)
        broken_off(at_step, 3, tmp_path, recipe=recipe)
    steps = torch.load(tmp_path / "state.pt", weights_only=True)["steps"]
    assert 10 < steps <= 60
    monkeypatch.setattr(Run, "steps_within", None)
    assert train(tiny(), bright_or_dark(), recipe, out=tmp_path, resume=True).steps == steps


def test_what_cannot_be_trained_or_written_is_refused_before_the_first_step(tmp_path):
    (tmp_path / "file").write_text("")

    colour = bright_or_dark(channels=3, side=16)
    for model, data, out, error, value in (
        (torch.nn.Linear(2, 2), bright_or_dark(), "run", TypeError, "Model as model: got Linear"),
        (tiny(), colour, "run", ValueError, r"\(3, 16, 16, 2\): got one for \(1, 8, 8, 2\)"),
        (tiny(), bright_or_dark(), "file", OSError, "File exists: .*file"),
        (tiny(), bright_or_dark(), "file/run", OSError, "Not a directory: .*run"),
    ):
        with pytest.raises(error, match=value):
            train(model, data, RECIPE, out=tmp_path / out)
    assert not (tmp_path / "run").exists()
