"""What models do to frequencies, and which frequencies they go by.

The ResNet of the shipped models is trained twice more, in float32, 48 minutes of one thread each.
For shape against texture, linear readouts of features learn generated images whose cues agree, and
decide where they conflict.
"""

from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

import minivit
from minivit.preprocessing import Preprocess
from studies.runner.pool import gather, weights_of
from studies.runner.run import Run
from studies.runner.survey import Figures, Survey
from studies.shared import inputs, small_models
from studies.shared.shape_models import SIZE, classifier, shapes
from studies.shared.training import accuracy, features, fitted, normalised
from vitlab import instruments
from vitlab.claims.measurements import frequency as measured
from vitlab.claims.measuring import Subject
from vitlab.data import Data, Split, load_data
from vitlab.data.shapes import draw_shapes
from vitlab.instruments.frequency import LogAmplitude
from vitlab.training import Recipe

VITS = ("cifar10_vit", "cifar10_vit_gap", "cifar10_vit_cls")
AGAIN = {f"cifar10_resnet, seed {seed}": seed for seed in (1, 2)}
RESNETS = ("cifar10_resnet", *AGAIN)
MODELS = (*VITS, *RESNETS, "cifar10_mixer")
RECIPE = replace(small_models.RECIPE, steps=1550, average=0.998, learning_rate=3e-3)
READOUTS = 5
LONGER = 4  # times the steps of the study of smoothing, which leave these models with little
SEEDS, SHAPE_SEEDS = range(3), range(5)
FEW = 500  # images to fit a readout, or to test it


@cache
def network(name: str) -> Any:
    if name not in AGAIN:
        return minivit.load(name)
    recipe = replace(RECIPE, precision="float32", seed=AGAIN[name])
    run = Run("resnet_32px", {"width": 32}, recipe)
    if not weights_of(run).exists():
        gather([run])
    return minivit.load(weights_of(run))


def amplitudes(name: str) -> Figures:
    """By part: relative log amplitudes, before and after."""
    model = network(name)
    x = model.preprocess(inputs.shuffled("CIFAR10", 500).images[:250])
    figures: Figures = {}
    if name not in RESNETS:
        figures["stream"] = {
            part: {"skip": summary(addition.skip), "sum": summary(addition.sum)}
            for part, addition in instruments.stream_frequencies(model, x, batch_size=50).items()
        }
    parts = [n for n, m in model.named_modules() if isinstance(m, torch.nn.Conv2d)]
    if name in VITS:
        parts = ["blocks.?.attention", "blocks.?.mlp"]
        figures["response"] = {
            part: {"gain": heads.gain, "same": heads.same}
            for part, heads in instruments.attention_response(model, x[:50]).items()
        }
    if "mixer" not in name:
        layers = instruments.layer_frequencies(model, x, *parts, batch_size=50)
        figures["layers"] = {
            part: {"before": summary(layer.before), "after": summary(layer.after)}
            for part, layer in layers.items()
        }
    return figures


def summary(amplitude: LogAmplitude) -> Figures:
    """What is high, the tilt, and the source's last bin."""
    last = amplitude.diagonal[-1]
    return {"high": amplitude.high, "tilt": amplitude.tilt, "diagonal": last}


def robustness(name: str) -> Figures:
    """Accuracy of a model of CIFAR-10 on images of all kinds."""
    data = inputs.shuffled("CIFAR10", 500)
    return accuracies(network(name), data.images.float() / 255, data.labels, measured.LEVEL)


def accuracies(model: Any, x: Tensor, labels: Tensor, level: float) -> Figures:
    """Accuracy on images as they are, low-pass, high-pass, and under noise in each band."""
    side = x.shape[-1]

    def right(images: Tensor) -> float:
        return accuracy(model.eval(), normalised(images, model.preprocess), labels)

    bands = [
        instruments.band_noise(len(x), x.shape[1], side, *ends, power=level**2, seed=i)
        for i, ends in enumerate(pairwise(measured.BANDS))
    ]
    return {
        "whole": right(x),
        "low": [right(instruments.low_pass(x, cutoff / side)) for cutoff in measured.CUTOFFS],
        "high": [right(measured.kept_mean(x, cutoff / side)) for cutoff in measured.CUTOFFS],
        "noise": [right(x + noise) for noise in bands],
    }


def readouts(name: str) -> Figures:
    """Accuracy where cues agree; decisions where they conflict, on whole and on filtered images."""
    model = network(name)
    agree = draw_shapes((READOUTS + 1) * FEW, seed=10, typical=1.0)
    conflict = draw_shapes(FEW, seed=11, typical=0.0)
    x = conflict.images.float() / 255
    images = {
        "whole": x,
        "low": instruments.low_pass(x, 4 / 32),
        "high": measured.kept_mean(x, 4 / 32),
    }
    read = {k: features(model, normalised(part, model.preprocess)) for k, part in images.items()}
    known, labels = features(model, model.preprocess(agree.images)), agree.labels.numpy()
    test = known[-FEW:], labels[-FEW:]
    figures: Figures = {"accuracy": [], **{kind: [] for kind in (*images, "few", "nearest")}}

    def decisions(decide: Any, kind: str) -> list[int]:
        decided = torch.from_numpy(decide.predict(read[kind]))
        counts = instruments.cue_conflict(decided, conflict.labels, conflict.textures)
        return [counts.shape, counts.texture, counts.neither]

    for i in range(READOUTS):
        part = slice(i * FEW, (i + 1) * FEW)
        fifth = slice(i * FEW, i * FEW + FEW // 5)
        linear = linear_map().fit(known[part], labels[part])
        figures["accuracy"].append(float(linear.score(*test)))
        for kind in images:
            figures[kind].append(decisions(linear, kind))
        # Two other ways to decide: a fit to a fifth of the images, and the nearest class mean.
        nearest = make_pipeline(StandardScaler(), NearestCentroid())
        for kind, decide, some in (("few", linear_map(), fifth), ("nearest", nearest, part)):
            decide.fit(known[some], labels[some])
            figures[kind].append([float(decide.score(*test)), *decisions(decide, "whole")])
    return figures


def linear_map() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))


SHORT = Recipe(steps=250, batch_size=64, learning_rate=5e-3, average=0.95)
VIT = {"image_size": 16, "patch_size": 4, "dim": 32, "depth": 4, "heads": 4}
SHORTER = replace(SHORT, steps=80, learning_rate=1e-2)
FAMILIES: dict[str, tuple[str, dict[str, Any], Recipe]] = {
    "vit": ("vit_8px", VIT, SHORT),
    "resnet": ("resnet_8px", {"image_size": 16, "width": 8}, SHORTER),
}
DIGIT_CUTOFF, DIGIT_LEVEL = 3, 0.3  # cycles per image; root mean square


def digits(family: str) -> Figures:
    """Small models, trained on whole, low-pass or high-pass digits, and tested on the same."""
    name, changes, recipe = FAMILIES[family]
    whole = load_data("DIGITS", size=16)
    kinds = {"whole": whole, "low": banded(whole, True), "high": banded(whole, False)}
    test = whole.test.images.float() / 255, whole.test.labels
    figures: Figures = {kind: [] for kind in kinds}
    for seed in SEEDS:
        for kind, data in kinds.items():
            model, right = fitted(partial(minivit.create, name, **changes), data, recipe, seed)
            scores = accuracies(model, *test, DIGIT_LEVEL) if kind == "whole" else right
            figures[kind].append(scores)
    return figures


def banded(whole: Data, low: bool) -> Data:
    """Digits, low-pass or high-pass; the latter on grey, and rounded to whole numbers."""

    def of(part: Split) -> Split:
        passed = instruments.low_pass if low else instruments.high_pass
        x = passed(part.images.float(), DIGIT_CUTOFF / 16) + (0 if low else 127.5)
        return Split(x.round().clamp(0, 255).to(torch.uint8), part.labels)

    parts = {key: of(getattr(whole, key)) for key in ("train", "validation", "test")}
    return Data.of("DIGITS", whole.classes, parts, licence=whole.licence)


def layers_of_shapes(kind: str) -> Figures:
    """By seed: the share of attentions, or of 3 x 3 convolutions of stride 1, that raise the high
    frequencies of a small model."""
    figures: Figures = {"raised": []}
    test = shapes("test")[0][:250]
    for seed in SHAPE_SEEDS:
        model = classifier(kind, seed, LONGER)
        if kind == "resnet plain":
            raised = measured.convolutions_raise(Subject(model, test)).figure
        else:
            layers = instruments.layer_frequencies(model, test, "blocks.?.attention").values()
            raised = sum(bool(x.after.high > x.before.high) for x in layers) / len(layers)
        figures["raised"].append(raised)
    return figures


def bands_of_shapes(kind: str) -> Figures:
    """By seed, accuracies of a small model of images that were never compressed."""
    test, truth, _ = shapes("test")
    figures = []
    for seed in SEEDS:
        model = classifier(kind, seed, LONGER)
        model.preprocess = Preprocess((SIZE, SIZE), (SIZE, SIZE), mean=(0.5,), std=(0.25,))
        figures.append(accuracies(model, test / 4 + 0.5, truth, measured.LEVEL))
    return {"whole": figures}


KINDS = "vit attention", "resnet plain"
OF_SHAPES = {"shapes": layers_of_shapes, "bands": bands_of_shapes}
OF_MODELS = {"amplitudes": amplitudes, "robustness": robustness, "readouts": readouts}
ROWS = {f"{kind}: {name}": partial(f, name) for kind, f in OF_MODELS.items() for name in MODELS}
ROWS |= {f"digits: {family}": partial(digits, family) for family in FAMILIES}
ROWS |= {f"{of}: {kind}": partial(f, kind) for of, f in OF_SHAPES.items() for kind in KINDS}
STUDY = Survey("frequency", ROWS, SEEDS)
