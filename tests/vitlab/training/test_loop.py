import io
import itertools
import json
import os
import resource
import signal
from dataclasses import asdict, replace

import numpy as np
import pytest
import safetensors.torch
import torch

import minivit
from tests.vitlab.training.small import TINY, bright_or_dark, tiny
from vitlab.training.loop import Stopped, train
from vitlab.training.progress import Progress
from vitlab.training.recipe import Recipe
from vitlab.training.run import Run

RECIPE = Recipe(
    steps=14,
    batch_size=12,
    learning_rate=5e-3,
    mixup=0.2,
    shift=0.2,
    flip=True,
    operations=2,
    cutout=0.3,
)  # 5 steps an epoch, and 4 in the last


def lines_of(folder):
    """The log without what depends on the clock."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if "second" not in k} for line in lines]


def stop_at(monkeypatch, step, error):
    advance = Run.advance

    def stopping(run):
        if run.step == step and run.steps > 10:  # not in the trial that times a step
            raise error
        return advance(run)

    monkeypatch.setattr(Run, "advance", stopping)


def test_a_model_learns_and_is_ready_to_use():
    data, model = bright_or_dark(), tiny()
    results = train(model, data, Recipe(steps=60, batch_size=16, learning_rate=1e-2))
    assert results.test.accuracy == results.validation.accuracy == 1
    assert results.steps == 60 and len(results.lines) == 15 and results.seconds > 0
    assert results.lines[-1]["loss"] < 0.4 < 0.6 < results.lines[0]["loss"]
    assert not model.training and model.classes == ("dark", "bright") and model.licence == "CC0"
    predicted = model(model.preprocess(data.test.images)).argmax(1)
    assert torch.equal(predicted, data.test.labels)


def test_training_leaves_the_random_numbers_of_the_caller_alone():
    model = tiny(dropout=0.1)
    state = torch.get_rng_state()
    train(model, bright_or_dark(), RECIPE)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_same_seed_gives_the_same_bits_and_another_others():
    models = [tiny(dropout=0.1) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        torch.rand(3)
        train(model, bright_or_dark(), replace(RECIPE, seed=seed))
    a, b, c = (torch.cat([p.flatten() for p in model.parameters()]) for model in models)
    assert torch.equal(a, b) and not torch.equal(a, c)


def test_every_image_is_seen_once_an_epoch_in_an_order_of_its_own(monkeypatch):
    seen = []
    monkeypatch.setattr("vitlab.training.run.augment", lambda x, *rest: seen.append(x) or x)
    data = bright_or_dark(n=60)
    train(tiny(), data, Recipe(epochs=2, batch_size=20))
    first, second = torch.cat(seen[:3]), torch.cat(seen[3:])
    pictures = data.train.images.float() / 255

    def ordered(x):
        return sorted(x.flatten(1).tolist())

    assert ordered(first) == ordered(second) == ordered(pictures)
    assert not torch.equal(first, second) and not torch.equal(first, pictures)


def test_a_folder_holds_the_model_its_card_the_log_and_the_state(tmp_path):
    data, model = bright_or_dark(), tiny(dropout=0.1)
    results = train(model, data, RECIPE, out=tmp_path / "run", command="python -m vitlab ...")
    folder = tmp_path / "run"
    assert {p.name for p in folder.iterdir()} == {
        "model.safetensors",
        "card.md",
        "log.jsonl",
        "state.pt",
        "confusion.csv",
        "classes.csv",
    }
    back = minivit.load(str(folder / "model.safetensors"))
    for key, tensor in model.state_dict().items():
        assert torch.equal(back.state_dict()[key], tensor), key
    assert back.preprocess == model.preprocess and tuple(back.classes) == data.classes
    *epochs, final = lines_of(folder)
    assert [line["epoch"] for line in epochs] == [1, 2, 3]
    assert [line["step"] for line in epochs] == [5, 10, 14]
    assert final == {
        "step": 14,
        "validation": asdict(results.validation),
        "test": asdict(results.test),
    }
    card = (folder / "card.md").read_text()
    for said in (
        "# ViT trained on noise", "dark, bright", "CC0", "python -m vitlab ...", "seed 0", "mixup = 0.2",
        f"{results.test.accuracy:.4f} | {results.test.log_likelihood:.4f} | {results.test.calibration_error:.4f}",
        f"torch {torch.__version__}", f"{sum(p.numel() for p in model.parameters()):,} parameters",
        f"| 3 | 14 | {epochs[2]['loss']:.4f} |", "moving average (decay 0.99)", "steps = 14", "dim = 8",
        "64 images to train on, 16 to validate, 20 to test; 0 damaged",
    ):  # fmt: skip
        assert said in card, said
    assert "epochs = " not in card


@pytest.mark.parametrize(
    "step",
    [pytest.param(1, marks=pytest.mark.full), 5, 7, pytest.param(13, marks=pytest.mark.full)],
)
@pytest.mark.parametrize("name", ["vit_8px", "resnet_8px"])
def test_a_training_that_broke_off_goes_on_to_the_same_bits(tmp_path, monkeypatch, name, step):
    def fresh():
        torch.manual_seed(0)
        changes = (
            {"dropout": 0.2, "stochastic_depth": 0.1} | TINY
            if name == "vit_8px"
            else {"classes": 2}
        )
        return minivit.create(name, **changes)

    data, whole, broken = bright_or_dark(), tmp_path / "whole", tmp_path / "broken"
    expected = train(fresh(), data, RECIPE, out=whole)
    with monkeypatch.context() as patch:
        stop_at(patch, step, RuntimeError("the power went"))
        with pytest.raises(RuntimeError):
            train(fresh(), data, RECIPE, out=broken, save_every=0)
    results = train(fresh(), data, RECIPE, out=broken, resume=True)
    assert (results.test, results.validation) == (expected.test, expected.validation)
    assert lines_of(broken) == lines_of(whole)
    model = "model.safetensors"
    assert (broken / model).read_bytes() == (whole / model).read_bytes()


def test_a_log_that_ran_ahead_of_the_state_is_put_back(tmp_path, monkeypatch):
    data, whole, broken = bright_or_dark(), tmp_path / "whole", tmp_path / "broken"
    train(tiny(), data, RECIPE, out=whole)
    with monkeypatch.context() as patch:
        stop_at(patch, 12, RuntimeError("the power went"))
        with pytest.raises(RuntimeError):
            train(tiny(), data, RECIPE, out=broken)
    assert len(lines_of(broken)) == 2  # but the state is that of step 0
    with (broken / "log.jsonl").open("a") as file:
        file.write('{"epoch": 3, "st')
    (broken / ".state.pt.abc").mkdir()
    (broken / ".state.pt.abc" / "state.pt").write_text("half")
    train(tiny(), data, RECIPE, out=broken, resume=True)
    assert lines_of(broken) == lines_of(whole)
    assert not list(broken.glob(".*"))


def test_a_finished_training_is_not_repeated(tmp_path, monkeypatch):
    data, first, again = bright_or_dark(), tiny(), tiny()
    results = train(first, data, RECIPE, out=tmp_path)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    stop_at(monkeypatch, 0, AssertionError("trained again"))
    assert train(again, data, RECIPE, out=tmp_path, resume=True) == results
    assert {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == before
    assert torch.equal(first.head.weight, again.head.weight) and not again.training


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"recipe": replace(RECIPE, seed=4, mixup=0.0)}, "the recipe's mixup is 0.2 there, 0.0 here; the recipe's seed is 0 there, 4 here"),
        ({"model": lambda: tiny(depth=1)}, "the model's depth is 2 there, 1 here"),
        ({"model": lambda: minivit.create("mixer_8px", classes=2)}, "the model's family is 'ViT' there, 'Mixer' here"),
        ({"data": bright_or_dark(n=70)}, r"the data's pictures is \[64, 16, 20\] there, \[70, 16, 20\] here"),
    ],
)  # fmt: skip
def test_another_training_does_not_go_on_from_here(tmp_path, monkeypatch, change, said):
    data = bright_or_dark()
    train(tiny(), data, RECIPE, out=tmp_path)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    arguments = {"model": tiny, "data": data, "recipe": RECIPE} | change
    with pytest.raises(ValueError, match=f"another training: .*{said}"):
        train(
            arguments["model"](), arguments["data"], arguments["recipe"], out=tmp_path, resume=True
        )
    assert {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == before


def test_other_images_under_the_same_name_are_noticed(tmp_path):
    data = bright_or_dark()
    train(tiny(), data, RECIPE, out=tmp_path)
    data.test.images[0, 0, 0, 0] ^= 1
    with pytest.raises(ValueError, match="the data's content is"):
        train(tiny(), data, RECIPE, out=tmp_path, resume=True)


def test_what_is_there_is_not_written_over(tmp_path):
    train(tiny(), bright_or_dark(), RECIPE, out=tmp_path)
    model = tiny()
    with pytest.raises(ValueError, match="already holds state.pt and model.safetensors: resume"):
        train(model, bright_or_dark(), RECIPE, out=tmp_path)
    assert model.preprocess is None and model.training


def test_a_model_whose_state_is_gone_is_not_written_over(tmp_path):
    train(tiny(), bright_or_dark(), RECIPE, out=tmp_path)
    (tmp_path / "state.pt").unlink()
    before = (tmp_path / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match="holds a model and no state to resume from: give another"):
        train(tiny(), bright_or_dark(), replace(RECIPE, seed=1), out=tmp_path, resume=True)
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_a_finished_training_whose_model_is_gone_writes_it_again(tmp_path):
    train(tiny(), bright_or_dark(), RECIPE, out=tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").unlink()
    train(tiny(), bright_or_dark(), RECIPE, out=tmp_path, resume=True)
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_a_folder_in_which_a_training_runs_is_refused_and_free_at_its_end(tmp_path, monkeypatch):
    advance = Run.advance

    def meanwhile(run):
        if run.step == 3:
            with pytest.raises(ValueError, match="another training is writing in"):
                train(tiny(), bright_or_dark(), RECIPE, out=tmp_path, resume=True)
        if run.step == 5:
            raise EOFError("the power went")
        return advance(run)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "advance", meanwhile)
        with pytest.raises(EOFError):
            train(tiny(), bright_or_dark(), RECIPE, out=tmp_path)
    assert not list(tmp_path.glob(".*"))
    train(tiny(), bright_or_dark(), RECIPE, out=tmp_path, resume=True)


def test_a_broken_state_is_refused_and_left_alone(tmp_path):
    train(tiny(), bright_or_dark(), RECIPE, out=tmp_path)
    state = tmp_path / "state.pt"
    state.write_bytes(state.read_bytes()[:1000])
    with pytest.raises(ValueError, match="expected the whole state of a training at .*state.pt"):
        train(tiny(), bright_or_dark(), RECIPE, out=tmp_path, resume=True)
    assert state.stat().st_size == 1000


def test_a_loss_that_is_not_finite_stops_with_advice_and_keeps_the_last_state(
    tmp_path, monkeypatch
):
    data, model = bright_or_dark(), tiny()
    advance = Run.advance

    def spoiling(run):
        if run.step == 7:
            run.model.head.weight.data[0, 0] = float("nan")
        return advance(run)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "advance", spoiling)
        with pytest.raises(
            FloatingPointError,
            match=r"loss is nan .* at step 8 of 14: try a learning rate below 0.005",
        ):
            train(model, data, RECIPE, out=tmp_path, save_every=0)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state["step"] == 7
    assert all(tensor.isfinite().all() for tensor in state["weights"].values())
    train(tiny(), data, RECIPE, out=tmp_path, resume=True)


def test_a_gradient_that_is_not_finite_never_reaches_the_weights():
    model = tiny()
    model.head.weight.register_hook(lambda grad: grad * float("inf"))
    with pytest.raises(FloatingPointError, match="gradient's norm"):
        train(model, bright_or_dark(), RECIPE)
    assert all(p.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_stops(tmp_path, monkeypatch, number):
    data, before = bright_or_dark(), signal.getsignal(number)
    advance = Run.advance
    with monkeypatch.context() as patch:
        patch.setattr(
            Run,
            "advance",
            lambda run: (run.step == 6 and os.kill(os.getpid(), number)) or advance(run),
        )
        with pytest.raises(Stopped, match="after step 7 of 14") as stopped:
            train(tiny(), data, RECIPE, out=tmp_path / "a")
    assert stopped.value.signum == number and signal.getsignal(number) is before
    train(tiny(), data, RECIPE, out=tmp_path / "a", resume=True)
    train(tiny(), data, RECIPE, out=tmp_path / "b")
    one, two = (safetensors.torch.load_file(tmp_path / n / "model.safetensors") for n in "ab")
    assert all(torch.equal(one[key], two[key]) for key in two)


def test_a_full_disk_leaves_the_last_state_whole(tmp_path, monkeypatch):
    """The operating system refuses: a file may have 1,000 bytes from step 6 on."""
    data, limits = bright_or_dark(), resource.getrlimit(resource.RLIMIT_FSIZE)
    advance = Run.advance

    def filling(run):
        if run.step == 6:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        return advance(run)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "advance", filling)
        try:
            with pytest.raises(OSError, match="cannot write in .*: File too large. What was saved"):
                train(tiny(), data, RECIPE, out=tmp_path, save_every=0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert torch.load(tmp_path / "state.pt", weights_only=True)["step"] == 6
    assert not list(tmp_path.glob(".*"))
    train(tiny(), data, RECIPE, out=tmp_path, resume=True)


def test_a_folder_that_cannot_be_written_is_named_before_the_first_step(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    stop_at(monkeypatch, 0, AssertionError("trained"))
    with pytest.raises(OSError, match="cannot write in .*run: Not a directory"):
        train(tiny(), bright_or_dark(), RECIPE, out=tmp_path / "file" / "run")


def test_minutes_become_a_number_of_steps_that_stays_when_it_goes_on(tmp_path, monkeypatch):
    recipe = Recipe(minutes=0.01, batch_size=12)
    ticks = itertools.count()  # a clock on which a step takes 10 ms, however busy the machine
    monkeypatch.setattr("vitlab.training.run.time.perf_counter", lambda: next(ticks) / 100)
    stop_at(monkeypatch, 3, RuntimeError("the power went"))
    with pytest.raises(RuntimeError):
        train(tiny(), bright_or_dark(), recipe, out=tmp_path, save_every=0)
    monkeypatch.undo()
    steps = torch.load(tmp_path / "state.pt", weights_only=True)["steps"]
    assert 10 < steps <= 60
    monkeypatch.setattr(Run, "steps_within", None)
    assert train(tiny(), bright_or_dark(), recipe, out=tmp_path, resume=True).steps == steps


def test_a_model_for_other_images_is_refused():
    with pytest.raises(
        ValueError,
        match="model is for 1 channels, 8 x 8 pixels, 2 classes: noise has 3 channels, 16 x 16 pixels, 2 classes",
    ):
        train(tiny(), bright_or_dark(channels=3, side=16))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_shows_a_bar_with_loss_and_accuracy_and_a_file_lines_alone(
    monkeypatch, terminal
):
    shown = io.StringIO()
    shown.isatty = lambda: terminal
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setenv("COLUMNS", "120")
    with Progress(4, 8, True) as bar:
        bar.bar.mininterval = 0
        bar.step(1.234, 0.5)
        bar.line(
            {
                "epoch": 1,
                "loss": 1.2,
                "accuracy": 0.5,
                "validation": {"accuracy": 0.25},
                "images_per_second": 99.5,
            },
            2,
        )
    said = shown.getvalue()
    assert "epoch 1/2  loss 1.200  accuracy 50.0%, held out 25.0%  100 images/s\n" in said
    assert ("5/8" in said and "loss 1.234, accuracy 50.0%" in said) == terminal


def test_settings_and_names_from_numpy_are_read_back(tmp_path):
    recipe = replace(RECIPE, learning_rate=np.float64(5e-3), epochs=np.float64(2))
    data = replace(bright_or_dark(), classes=(np.str_("dark"), np.str_("bright")))
    results = train(tiny(), data, recipe, out=tmp_path)
    assert train(tiny(), data, recipe, out=tmp_path, resume=True) == results


def beyond(part):
    def change(model, data):
        getattr(data, part).labels[0] = 2

    return change


def negative(model, data):
    data.train.labels[0] = -1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda model, data: model.double(),
            "expected weights in torch.float32: got torch.float64",
        ),
        (lambda model, data: model.to("meta"), "expected weights in memory"),
        (lambda model, data: model.requires_grad_(False), "expected a parameter that trains"),
        (beyond("train"), "labels from 0 to 1 in the train part of noise: got .*2"),
        (beyond("validation"), "in the validation part"),
        (beyond("test"), "in the test part"),
        (negative, "in the train part of noise: got .-1"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_the_folder_is_begun(tmp_path, change, said):
    model, data = tiny(), bright_or_dark()
    change(model, data)
    with pytest.raises(ValueError, match=said):
        train(model, data, RECIPE, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_scores_take_the_batches_of_the_recipe(monkeypatch):
    sizes, forward = [], minivit.ViT.forward

    def noted(model, x):
        sizes.append(len(x))
        return forward(model, x)

    monkeypatch.setattr(minivit.ViT, "forward", noted)
    train(tiny(), bright_or_dark(), RECIPE)
    assert max(sizes) == 12


def test_after_a_first_step_that_diverges_another_recipe_may_begin(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 0, FloatingPointError("nan"))
        with pytest.raises(FloatingPointError):
            train(tiny(), bright_or_dark(), RECIPE, out=tmp_path)
    assert (tmp_path / "state.pt").exists()
    lower = replace(RECIPE, learning_rate=1e-3)
    train(tiny(), bright_or_dark(), lower, out=tmp_path)
    assert torch.load(tmp_path / "state.pt", weights_only=True)["step"] == 14


@pytest.mark.parametrize("step", [7, 13])
def test_weights_that_are_not_finite_never_replace_a_good_state(tmp_path, monkeypatch, step):
    advance = Run.advance

    def spoiling(run):
        result = advance(run)
        if run.step == step + 1:
            run.model.head.weight.data[0, 0] = float("inf")
        return result

    monkeypatch.setattr(Run, "advance", spoiling)
    with pytest.raises(FloatingPointError, match="not finite after step .*rate below 0.005"):
        train(tiny(), bright_or_dark(), RECIPE, out=tmp_path, save_every=0)
    assert torch.load(tmp_path / "state.pt", weights_only=True)["step"] == step
    assert not (tmp_path / "model.safetensors").exists()


def test_a_file_in_the_folders_place_is_named_and_no_saved_training_spoken_of(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot write in .*file: File exists$"):
        train(tiny(), bright_or_dark(), RECIPE, out=tmp_path / "file")


@pytest.mark.parametrize("seconds", [float("nan"), -1])
def test_seconds_between_states_are_a_number_from_0(tmp_path, seconds):
    with pytest.raises(ValueError, match="seconds, at least 0, between two states"):
        train(tiny(), bright_or_dark(), RECIPE, out=tmp_path / "run", save_every=seconds)
    assert not (tmp_path / "run").exists()


def test_names_of_classes_cannot_break_the_card_nor_its_writing(tmp_path):
    data = replace(bright_or_dark(), classes=("a|b\nc", "caf\udce9"))
    train(tiny(), data, RECIPE, out=tmp_path)
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert "2 classes: a\\|b\\nc, caf\\udce9." in card
    train(tiny(), data, RECIPE, out=tmp_path, resume=True)


def test_a_model_of_another_library_is_refused():
    with pytest.raises(TypeError, match=r"a model of minivit's \(minivit.ViT, .*\): got Linear"):
        train(torch.nn.Linear(2, 2), bright_or_dark())
