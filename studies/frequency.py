"""Low-pass and high-pass: what models do to frequencies, and which frequencies they go by.

The shipped models of CIFAR-10 are measured on its test images: log amplitudes before and after each
attention, MLP and convolution, and in the residual stream; accuracy on low- and high-pass images,
and under noise of equal power in five bands. For shape against texture, linear readouts of their
features learn generated images whose cues agree, and decide where they conflict. The ResNet that
comes with the package is trained twice more, from other seeds and in float32, 48 minutes of one
thread each. The rows of digits train small models, each on whole, on low-pass or on high-pass
images, seconds each; those of shapes ask what the layers of small models of generated shapes do to
frequencies.
"""

from collections.abc import Callable
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
from minivit.model import Model
from studies.runner.pool import gather, weights_of
from studies.runner.run import Run
from studies.runner.survey import Figures, Survey
from studies.shared import inputs, shape_models, small_models
from studies.shared.figures import plain
from studies.shared.measures import features
from studies.shared.shape_models import new, shapes
from studies.shared.training import accuracy, fit, trained
from vitlab.claims.measurements.frequency import (
    BANDS,
    CUTOFFS,
    LEVEL,
    convolutions_raise,
    kept_mean,
)
from vitlab.claims.measuring import Subject
from vitlab.data import Data, Split, load_data
from vitlab.data.shapes import draw_shapes
from vitlab.instruments import (
    attention_response,
    band_noise,
    cue_conflict,
    high_pass,
    layer_frequencies,
    low_pass,
    stream_frequencies,
)
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


def measure(name: str) -> Figures:
    kind, _, rest = name.partition(": ")
    return plain(KINDS[kind](rest))


@cache
def network(name: str) -> Model:
    if name not in AGAIN:
        return inputs.model(name)
    recipe = replace(RECIPE, precision="float32", seed=AGAIN[name])
    run = Run("resnet_32px", {"width": 32}, recipe)
    if not weights_of(run).exists():
        gather([run])
    return minivit.load(weights_of(run))


def amplitudes(name: str) -> Figures:
    """By part: high, tilt and rings of relative log amplitudes, before and after."""
    model = network(name)
    x = model.preprocess(pictures().images[:250])
    blocks = len(list(model.get_submodule("blocks").children()))
    figures: Figures = {}
    if name in RESNETS:
        parts = [n for n, m in model.named_modules() if isinstance(m, torch.nn.Conv2d)]
        parts += [f"blocks.{i}" for i in range(blocks)]
    else:
        kinds = ("mlp",) if "mixer" in name else ("attention", "mlp")
        parts = [f"blocks.{i}.{part}" for i in range(blocks) for part in kinds]
        figures["stream"] = {
            part: {key: summary(getattr(addition, key)) for key in ("skip", "branch", "sum")}
            for part, addition in stream_frequencies(model, x, batch_size=50).items()
        }
    figures["layers"] = {
        part: {"before": summary(layer.before), "after": summary(layer.after)}
        for part, layer in layer_frequencies(model, x, *parts, batch_size=50).items()
    }
    if name in VITS:
        figures["response"] = {
            part: {"gain": heads.gain, "same": heads.same}
            for part, heads in attention_response(model, x[:50]).items()
        }
    return figures


def summary(one: LogAmplitude) -> Figures:
    """What is high, the tilt, rings, the source's last bin, and the constant wave itself."""
    return {
        "high": one.high.item(),
        "tilt": one.tilt.item(),
        "diagonal": one.diagonal[-1].item(),
        "constant": one.values[0, 0].item(),
        "radial": one.radial,
    }


def accuracies(model: Model, data: Split, level: float) -> Figures:
    """Accuracy on images as they are, low-pass, high-pass, and under noise in each band."""
    x = data.images.float() / 255
    side = x.shape[-1]

    def right(images: Tensor) -> float:
        return accuracy(model.eval(), normalised(model, images), data.labels)

    bands = [
        band_noise(len(x), x.shape[1], side, *ends, power=level**2, seed=i)
        for i, ends in enumerate(pairwise(BANDS))
    ]
    return {
        "whole": right(x),
        "low": [right(low_pass(x, cutoff / side)) for cutoff in CUTOFFS],
        "high": [right(kept_mean(x, cutoff / side)) for cutoff in CUTOFFS],
        "noise": [right(x + noise) for noise in bands],
    }


def normalised(model: Model, images: Tensor) -> Tensor:
    """Images of floating numbers, black 0 and white 1, as the model's preprocessing makes them."""
    how: Any = model.preprocess
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in (how.mean, how.std))
    return (images - mean) / std


def readouts(name: str) -> Figures:
    """Accuracy where cues agree; decisions where they conflict, on whole and on filtered images."""
    model = network(name)
    agree = draw_shapes((READOUTS + 1) * FEW, seed=10, typical=1.0)
    conflict = draw_shapes(FEW, seed=11, typical=0.0)
    x = conflict.images.float() / 255
    images = {"whole": x, "low": low_pass(x, 4 / 32), "high": kept_mean(x, 4 / 32)}
    read = {kind: features(model, normalised(model, some)) for kind, some in images.items()}
    known = features(model, model.preprocess(agree.images))
    test = known[-FEW:], agree.labels[-FEW:].numpy()
    figures: Figures = {"accuracy": [], **{kind: [] for kind in (*images, "few", "nearest")}}

    def linear_map() -> Any:
        return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))

    def decisions(decide: Any, features: Any) -> list[int]:
        decided = torch.from_numpy(decide.predict(features))
        counts = cue_conflict(decided, conflict.labels, conflict.textures)
        return [counts.shape, counts.texture, counts.neither]

    for i in range(READOUTS):
        part = slice(i * FEW, (i + 1) * FEW)
        fifth = slice(i * FEW, i * FEW + FEW // 5)
        linear = linear_map().fit(known[part], agree.labels[part].numpy())
        figures["accuracy"].append(float(linear.score(*test)))
        for kind, features_ in read.items():
            figures[kind].append(decisions(linear, features_))
        # Two other ways to decide: a fit to a fifth of the images, and the nearest class mean.
        nearest = make_pipeline(StandardScaler(), NearestCentroid())
        for kind, decide, some in (("few", linear_map(), fifth), ("nearest", nearest, part)):
            decide.fit(known[some], agree.labels[some].numpy())
            score = float(decide.score(*test))
            figures[kind].append([score, *decisions(decide, read["whole"])])
    return figures


FAMILIES: dict[str, tuple[str, dict[str, Any], Recipe]] = {
    "vit": (
        "vit_8px",
        {"image_size": 16, "patch_size": 4, "dim": 32, "depth": 4, "heads": 4},
        Recipe(steps=250, batch_size=64, learning_rate=5e-3, average=0.95),
    ),
    "resnet": (
        "resnet_8px",
        {"image_size": 16, "width": 8},
        Recipe(steps=80, batch_size=64, learning_rate=1e-2, average=0.95),
    ),
}
DIGIT_CUTOFF, DIGIT_LEVEL = 3, 0.3  # cycles per image; root mean square


def digits(family: str) -> Figures:
    """Small models, trained on whole, low-pass or high-pass digits, and tested on the same."""
    whole = load_data("DIGITS", size=16)
    name, changes, recipe = FAMILIES[family]
    figures: Figures = {"whole": [], "low": [], "high": []}
    for seed in SEEDS:
        for kind, data in (("whole", whole), ("low", banded(True)), ("high", banded(False))):
            model, right = trained(partial(minivit.create, name, **changes), data, recipe, seed)
            every = accuracies(model, whole.test, DIGIT_LEVEL) if kind == "whole" else right
            figures[kind].append(every)
    return figures


def layers_of_shapes(kind: str) -> Figures:
    """By seed: the share of a small model's layers that raise the high frequencies; its accuracy.

    Layers are the attention of a ViT, and the 3 x 3 convolutions of stride 1 of a ResNet.
    """
    figures: Figures = {"raised": [], "accuracy": []}
    for seed in SHAPE_SEEDS:
        torch.manual_seed(seed)
        images, labels, _ = shapes("train")
        test, truth, _ = shapes("test")
        model = new(kind)
        steps = LONGER * shape_models.STEPS[kind.split()[0]]
        fit(model, images, labels, steps=steps, seed=seed)
        if kind == "resnet plain":
            raised = convolutions_raise(Subject(model, test[:250])).figure
        else:
            layers = layer_frequencies(model, test[:250], "blocks.?.attention").values()
            raised = sum(bool(one.after.high > one.before.high) for one in layers) / len(layers)
        figures["raised"].append(raised)
        figures["accuracy"].append(accuracy(model, test, truth))
    return figures


@cache
def banded(low: bool) -> Data:
    """The digits, low-pass or high-pass; the latter on grey, and rounded to whole numbers."""
    whole = load_data("DIGITS", size=16)

    def of(part: Split) -> Split:
        x = part.images.float()
        x = low_pass(x, DIGIT_CUTOFF / 16) if low else high_pass(x, DIGIT_CUTOFF / 16) + 127.5
        return Split(x.round().clamp(0, 255).to(torch.uint8), part.labels)

    parts = {key: of(getattr(whole, key)) for key in ("train", "validation", "test")}
    return Data.of("DIGITS", whole.classes, parts, licence=whole.licence)


@cache
def pictures() -> Split:
    """500 test images of CIFAR-10, of all classes, in an order without the classes."""
    images = inputs.pictures("CIFAR10", 500)
    return images[torch.randperm(len(images), generator=torch.Generator().manual_seed(0))]


KINDS: dict[str, Callable[[str], Figures]] = {
    "amplitudes": amplitudes,
    "robustness": lambda name: accuracies(network(name), pictures(), LEVEL),
    "readouts": readouts,
    "digits": digits,
    "shapes": layers_of_shapes,
}
NAMES = (
    *(f"{kind}: {name}" for kind in ("amplitudes", "robustness", "readouts") for name in MODELS),
    *(f"digits: {family}" for family in FAMILIES),
    "shapes: vit attention",
    "shapes: resnet plain",
)
STUDY = Survey("frequency", NAMES, measure, seeds=SEEDS)
