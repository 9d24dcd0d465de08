"""Each study runs to its end on little: few steps, one seed, and images drawn for the purpose."""

import json
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module

import pytest
import torch

from minivit.loading import resized
from studies.runner.command import NAMES, load, module_of
from studies.runner.storage import HERE, Store
from studies.runner.study import Study
from studies.shared import inputs
from vitlab.convert.open_model import open_any
from vitlab.data import Data, Split, load_data
from vitlab.data.shapes import CLASSES, draw_shapes
from vitlab.training import Recipe


def untrained_dinov2(image_size=224):
    torch.manual_seed(0)
    return resized(open_any("dinov2_small_saliency", untrained=True).model, image_size)


ONE = range(1)
TWO = Recipe(steps=2, batch_size=64)
# Of each study that measures: rows that together run all of its code, and what makes them short.
SURVEYS = {
    "ablations": (["vit without norm", "mixer by gd", "digits", "digits without mlp", "cifar10_mixer"],
                  dict(SEEDS=ONE, DEPTHS=(1,), RECIPE=TWO, STEPS=2)),
    "block_of_today": (["today", "qk, 3 x", "swiglu at best"], dict(SEEDS=ONE, STEPS=1, RATES=(1e-2, 3e-2))),
    "curvature": (["resnet, tenth", "vit, all, probes", "vit, all, relative", "through training", "cifar10_vit_cls", "hybrid, all, 1 x", "resnet, all, 40 steps"],
                  dict(EPOCH=1, LEVELS=(9.0, 0.0), SEEDS=ONE, EARLY=1, LATE=2, IMAGES=16, PROBES=2, STEPS=3, STOPS=(0, 1))),
    "distillation": (["digits 63", "cifar10"], dict(SEEDS=ONE, IMAGES=1, SHORT=TWO, LONG=TWO)),
    "drawing": (["drawings", "in context", "patches of 4, 3 x"],
                dict(SEEDS=ONE, SHORT=2, LONG=2, REFLOW=2, DRAWN=20, PAIRS=64)),
    "first_filters": (["narrow ViT, begun short", "ResNet, 1 x", "places from 100 digits, 3 x"],
                      dict(SEEDS=range(2), STEPS=20, TIMES=(3,))),
    "frequency": (["amplitudes: cifar10_vit_gap", "amplitudes: cifar10_resnet, seed 1", "robustness: cifar10_mixer",
                   "readouts: cifar10_resnet", "digits: vit", "shapes: vit attention", "shapes: resnet plain", "bands: vit attention"],
                  dict(SEEDS=ONE, SHAPE_SEEDS=ONE, READOUTS=1, FEW=50, LONGER=1)),
    "generated_inputs": (["real pictures", "vit, blur and crops", "resnet, waves", "vit, waves, no views"], dict(STEPS=2)),
    "hybrids": (["011, shapes", "begin, shapes", "flat 100, shapes"], dict(SEEDS=range(2), STEPS=2)),
    "images_and_words": (["softmax 48, 3 x", "sigmoid 8", "softmax at 100"], dict(SEEDS=ONE, STEPS=2)),
    "inversion_and_training": (["ViT, no MLP", "ResNet"], dict(SEEDS=ONE, STEPS=2, BUDGET=5)),
    "inversion_at_scale": (["vit_b_32 block 1 untrained"], dict(EVALUATIONS=23, MODELS={"vit_b_32": (32, "", (1,))})),
    "inversion_at_the_criterion": (["digits_mixer"], dict(LONG=2)),
    "inversion_by_depth": (["cifar10_vit_gap", "resnet_32px untrained"], dict(DEPTH_STEPS=2)),
    "inversion_by_descent": (["digits_vit"], dict(DESCENT=2)),
    "inversion_in_miniature": (["seed 0"], dict(FEW=1, TIMES=2, LONG=2)),
    "inversion_of_one_layer": (["trained", "untrained 0"], dict(PICTURES=1, STEPS=10)),
    "inversion_rates": (["seed 0"], dict(RATE_STEPS=2, RATES=(1.0, 1e9))),
    "lesions": (["three stages", "one stage", "digits: 0", "planted: 0", "two digits: 0", "cifar10_resnet"],
                dict(SEEDS=ONE, MORE=ONE, STEPS=2, STAGES={"three stages": (1, 1, 1), "one stage": (3,)})),
    "longer_searches": (["cifar10_vit_gap without mlp", "undo cifar10_vit_gap", "vit 0 without norm"],
                        dict(MANY=2, DEPTHS=(1,), BUDGETS=(1,), PHOTOGRAPHS=1, UNDONE=1)),
    "precision": (["digits_vit", "dinov2_small_saliency"],
                  dict(IMAGES=1, PHOTOGRAPHS=("chelsea",), dinov2_small_saliency=untrained_dinov2)),
    "pretrained": (["maps", "positions", "filters", "distance", "norms", "layers", "embedding", "way back, block 1"],
                   dict(dinov2_small_saliency=untrained_dinov2, PHOTOGRAPHS=("chelsea", "coffee", "rocket", "astronaut"), ITERATIONS=2, NEWTON=1, POWER=2, NEARBY=1)),
    "rates_by_width": (["32, one rate", "16, divided"], dict(SEEDS=ONE, HALVINGS=[4], STEPS=2)),
    "reach": (["3 x 3, all", "shifted windows, tenth", "static, all", "3 x 3, curvature"],
              dict(SEEDS=ONE, STEPS={"all": 2, "tenth": 2}, EARLY=1, IMAGES=8)),
    "representations": (["cifar10_vit_gap", "cifar10_resnet", "untrained vit without residuals", "vit and resnet", "digits", "pit, 1 x", "vit, 3 x"], dict(SEEDS=range(2))),
    "scale": (["retrieval attention with positions", "retrieval recurrent", "digits convolution, all", "digits recurrence, tenth", "masked", "marked attention"],
              dict(SEEDS=ONE, LENGTHS=(4, 32), STEPS={"attention": 2, "recurrent": 2, "digits": 2})),
    "sinks": (["register", "plus one, with an MLP", "sigmoid, 3 x"], dict(SEEDS=ONE, STEPS=2, COUNT=20)),
    "smoothing": (["vit attention", "vit gaussian", "resnet plain", "vit convolution, 1 x", "resnet blur, 3 x", "dense vit none, 1 x",
                   "cifar10_vit_gap", "cifar10_resnet"], dict(SEEDS=range(2), MORE=ONE, steps_of=lambda _: 2)),
    "trained_inverse": (["cifar10_feedforward"], dict(LEARNED_FROM=40, HELD_OUT=4, STEPS=2, SHORT=2)),
    "unwinding": (["digits_vit"], dict(PICTURES=1)),
    "unwinding_after_a_climb": (["cifar10_feedforward", "cifar10_mixer from crops"], dict(LEARNED_FROM=40, SEARCH=2)),
    "unwinding_from_nearby": (["cifar10_mixer"], dict(NEARBY=1, SEARCH=2)),
    "without_residuals": (["without"], dict(SEEDS=ONE, STEPS=2, FIRST={"without": 1e-2})),
    "without_labels": (["masked 0", "both 0", "no centre 0", "pixels"], dict(STEPS={"both": 8, "masked": 2}, FEWER=2)),
    "way_back": (["cifar10_mixer"], dict(LOOKED_AT=0, LEARNED_FROM=40)),
    "where_attention_looks": (["cifar10_vit_gap", "cifar10_vit_no_residual", "vit_32px untrained"], dict(PICTURES=8, FEW=4, SEEDS=ONE)),
}  # fmt: skip
SHARED = {
    "digit_models": {"SEEDS": range(2)},
    "lengths": {"RATES": (3e-3, 1e-2), "SEARCHED": ONE},
    "masked_patches": {"STEPS": 2, "DRAWS": 1},
    "planted": {"STEPS": 2, "PICTURES": 10},
    "sequences": {"COUNT": 20},
    "shape_models": {"TRAIN": 40, "TEST": 40, "STEPS": {"vit": 2, "resnet": 2}},
}
TRAINED = [name for name in NAMES if isinstance(load(name), Study)]


@pytest.fixture(scope="module")
def drawn():
    """Eighty images in the place of each part of CIFAR-10."""
    shapes = [draw_shapes(80, seed=seed) for seed in range(3)]
    parts = (Split(drawn.images, drawn.labels) for drawn in shapes)
    names = "train", "validation", "test"
    return Data.of("SHAPES", CLASSES, dict(zip(names, parts, strict=True)))


@pytest.fixture(autouse=True)
def little(monkeypatch, drawn, tmp_path):
    monkeypatch.setattr("studies.shared.lengths.HERE", Store(tmp_path))

    def forget():
        for module in [m for name, m in sys.modules.items() if name.startswith("studies.")]:
            for value in vars(module).values():
                getattr(value, "cache_clear", lambda: None)()

    def loaded(data, *_, **how):
        return load_data(data, **how) if data == "DIGITS" else drawn

    forget()
    spread = inputs.spread
    for module in ("runner.run", "shared.inputs", "data_size"):
        monkeypatch.setattr(f"studies.{module}.loaded", loaded)
    monkeypatch.setattr("studies.hybrids.loaded", partial(load_data, fraction=0.02))
    monkeypatch.setattr(inputs, "spread", lambda part, number: spread(part, min(number, 80)))
    monkeypatch.setattr("studies.unwinding.PICTURES", 1)
    for module, settings in SHARED.items():
        for key, value in settings.items():
            monkeypatch.setattr(f"studies.shared.{module}.{key}", value)
    models = import_module("studies.shared.digit_models")
    monkeypatch.setattr(models, "MODELS", {k: (n, c, 2) for k, (n, c, _) in models.MODELS.items()})
    frequency = import_module("studies.frequency")
    short = {k: (n, c, replace(r, steps=2)) for k, (n, c, r) in frequency.FAMILIES.items()}
    monkeypatch.setattr(frequency, "FAMILIES", short)
    result = {"scores": {"test": {"accuracy": 0.5}}, "curve": [], "seconds": 1}
    for name, twin in (("frequency", "resnet"), ("distillation", "vit_gap")):  # no hour's training
        checkpoint = HERE.root / f"minivit/checkpoints/cifar10_{twin}.safetensors"
        monkeypatch.setattr(f"studies.{name}.gather", lambda runs: [result])
        monkeypatch.setattr(f"studies.{name}.weights_of", lambda run, path=checkpoint: path)
    yield
    forget()


@pytest.mark.full
@pytest.mark.parametrize(("name", "row"), [(name, row) for name, (rows, _) in SURVEYS.items() for row in rows])  # fmt: skip
def test_a_study_measures_each_kind_of_row(name, row, monkeypatch):
    for key, value in SURVEYS[name][1].items():
        monkeypatch.setattr(module_of(name), key, value)
    torch.set_num_threads(1)
    assert json.dumps(load(name).measure(row), allow_nan=False) != "{}"


@pytest.mark.full
@pytest.mark.parametrize("name", TRAINED)
def test_a_study_trains_to_its_end_and_finds_the_same_again(name, tmp_path, capsys):
    def small(run):
        recipe = replace(run.recipe, steps=2, batch_size=10)
        return replace(run, data=run.data.replace("CIFAR10", "SHAPES"), recipe=recipe)

    study, store = load(name), Store(tmp_path)
    little = replace(
        study,
        rows={row: [small(run) for run in runs[:2]] for row, runs in study.rows.items()},
        finals=lambda row, run: [small(final) for final in study.finals(row, run)[:2]],
    )  # fmt: skip
    little.carry_out(store)
    assert little.recheck("", store) == 0
    printed = capsys.readouterr().out
    assert all(row in printed for row in study.rows) and "the figures agree" in printed


def test_every_study_is_here():
    assert sorted([*SURVEYS, *TRAINED]) == NAMES
    assert all(set(rows) <= set(load(name).rows) for name, (rows, _) in SURVEYS.items())
