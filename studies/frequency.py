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
from functools import cache
from typing import Any

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

import minivit
from minivit.model import Model
from minivit.preprocessing import Preprocess
from studies.runner.pool import gather, trained
from studies.runner.run import Run
from studies.runner.survey import Figures, Survey
from studies.shared import inputs, small_models
from studies.shared.digit_models import plain
from studies.shared.measures import features
from studies.shared.shape_models import fit, in_parts, new, shapes, steps_of
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
from vitlab.training import Recipe, train

VITS = ("cifar10_vit", "cifar10_vit_gap", "cifar10_vit_cls")
AGAIN = {f"cifar10_resnet, seed {seed}": seed for seed in (1, 2)}
RESNETS = ("cifar10_resnet", *AGAIN)
MODELS = (*VITS, *RESNETS, "cifar10_mixer")
RECIPE = replace(small_models.RECIPE, steps=1550, average=0.998, learning_rate=3e-3)
READOUTS = 5
LONGER = 4  # times the steps of the study of smoothing, which leave these models with little
SEEDS = range(3)
FEW = 500  # images to fit a readout, or to test it


def measure(name: str, rehearsal: bool) -> Figures:
    """The figures of one row."""
    kind, _, rest = name.partition(": ")
    found: Figures = ROWS[kind](rest, rehearsal)
    return plain(found)


@cache
def network(name: str, rehearsal: bool) -> Model:
    """A model that comes with the package, or its like from another seed."""
    if name not in AGAIN:
        return inputs.model(name)
    if rehearsal:
        return inputs.model("cifar10_resnet")
    recipe = replace(RECIPE, precision="float32", seed=AGAIN[name])
    run = Run("resnet_32px", {"width": 32}, recipe)
    if not trained(run).exists():
        gather([run])
    return minivit.load(trained(run))


def amplitudes(name: str, rehearsal: bool) -> Figures:
    """By part: high, tilt and rings of relative log amplitudes, before and after."""
    model = network(name, rehearsal)
    x = model.preprocess(pictures(rehearsal).images[: 4 if rehearsal else 250])
    blocks = len(list(model.get_submodule("blocks").children()))
    found: Figures = {}
    if name in RESNETS:
        parts = [n for n, m in model.named_modules() if isinstance(m, torch.nn.Conv2d)]
        parts += [f"blocks.{i}" for i in range(blocks)]
    else:
        kinds = ("mlp",) if "mixer" in name else ("attention", "mlp")
        parts = [f"blocks.{i}.{part}" for i in range(blocks) for part in kinds]
        stream = stream_frequencies(model, x, batch_size=50)
        found["stream"] = {
            part: {key: summary(getattr(one, key)) for key in ("skip", "branch", "sum")}
            for part, one in stream.items()
        }
    layers = layer_frequencies(model, x, *parts, batch_size=50)
    found["layers"] = {
        part: {"before": summary(one.before), "after": summary(one.after)}
        for part, one in layers.items()
    }
    if name in VITS:
        heads = attention_response(model, x[:50])
        found["response"] = {
            part: {key: getattr(one, key) for key in ("gain", "same")}
            for part, one in heads.items()
        }
    return found


def summary(one: LogAmplitude) -> Figures:
    """What is high, the tilt, rings, the source's last bin, and the constant wave itself."""
    return {
        "high": one.high.item(),
        "tilt": one.tilt.item(),
        "diagonal": one.diagonal[-1].item(),
        "constant": one.values[0, 0].item(),
        "radial": one.radial,
    }


def robustness(name: str, rehearsal: bool) -> Figures:
    """Accuracy on whole, on filtered and on noisy images."""
    data = pictures(rehearsal)
    return accuracies(network(name, rehearsal), data, LEVEL)


def accuracies(model: Model, data: Split, level: float) -> Figures:
    """Accuracy on images as they are, low-pass, high-pass, and under noise in each band."""
    x = data.images.float() / 255
    side = x.shape[-1]

    def right(images: Tensor) -> float:
        return (answers(model, images) == data.labels).double().mean().item()

    bands = [
        band_noise(len(x), x.shape[1], side, *ends, power=level**2, seed=i)
        for i, ends in enumerate(zip(BANDS, BANDS[1:], strict=False))
    ]
    return {
        "whole": right(x),
        "low": [right(low_pass(x, cutoff / side)) for cutoff in CUTOFFS],
        "high": [right(kept_mean(x, cutoff / side)) for cutoff in CUTOFFS],
        "noise": [right(x + noise) for noise in bands],
    }


@torch.no_grad()
def answers(model: Model, images: Tensor) -> Tensor:
    """Classes of images of floating numbers, black 0 and white 1, not clipped."""
    return torch.cat([model.eval()(x).argmax(1) for x in normalised(model, images).split(250)])


def normalised(model: Model, images: Tensor) -> Tensor:
    """As the model's preprocessing does with whole numbers."""
    how = model.preprocess
    assert isinstance(how, Preprocess)
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in (how.mean, how.std))
    return (images - mean) / std


def readouts(name: str, rehearsal: bool) -> Figures:
    """Accuracy where cues agree; decisions where they conflict, on whole and on filtered images."""
    model = network(name, rehearsal)
    few = 50 if rehearsal else FEW
    agree = draw_shapes((READOUTS + 1) * few, seed=10, typical=1.0)
    conflict = draw_shapes(few, seed=11, typical=0.0)
    x = conflict.images.float() / 255
    kinds: dict[str, Callable[[], Tensor]] = {
        "whole": lambda: x,
        "low": lambda: low_pass(x, 4 / 32),
        "high": lambda: kept_mean(x, 4 / 32),
    }
    seen = {kind: float_features(model, made()) for kind, made in kinds.items()}
    known = features(model, agree.images)
    found: Figures = {"accuracy": [], **{kind: [] for kind in (*kinds, "few", "nearest")}}
    test = known[-few:], agree.labels[-few:].numpy()

    def decisions(decide: Any, read: Any) -> list[int]:
        decided = torch.from_numpy(decide.predict(read))
        counts = cue_conflict(decided, conflict.labels, conflict.textures)
        return [counts.shape, counts.texture, counts.neither]

    for i in range(READOUTS):
        part = slice(i * few, (i + 1) * few)
        linear = linear_map().fit(known[part], agree.labels[part].numpy())
        found["accuracy"].append(float(linear.score(*test)))
        for kind, read in seen.items():
            found[kind].append(decisions(linear, read))
        # Two other ways to decide: a fit to a fifth of the images, and the nearest class mean.
        fifth = slice(i * few, i * few + few // 5)
        weaker = linear_map().fit(known[fifth], agree.labels[fifth].numpy())
        nearest = make_pipeline(StandardScaler(), NearestCentroid())
        nearest.fit(known[part], agree.labels[part].numpy())
        for kind, decide in (("few", weaker), ("nearest", nearest)):
            accuracy = float(decide.score(*test))
            found[kind].append([accuracy, *decisions(decide, seen["whole"])])
    return found


def linear_map() -> Any:
    """Standardised features, and a linear map to classes."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))


@torch.no_grad()
def float_features(model: Model, images: Tensor) -> Any:
    """The inputs of the head, for images of floating numbers."""
    head, model.head = model.head, torch.nn.Identity()
    try:
        chunks = [model.eval()(x) for x in normalised(model, images).split(250)]
    finally:
        model.head = head
    return torch.cat(chunks).numpy()


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


def digits(family: str, rehearsal: bool) -> Figures:
    """Small models, trained on whole, low-pass or high-pass digits, and tested on the same."""
    whole = load_data("DIGITS", size=16)
    name, changes, recipe = FAMILIES[family]
    found: Figures = {"whole": [], "low": [], "high": []}
    for seed in SEEDS[:1] if rehearsal else SEEDS:
        for kind, filtered in (("whole", whole), ("low", banded(True)), ("high", banded(False))):
            torch.manual_seed(seed)
            model = minivit.create(name, **changes)
            steps = 2 if rehearsal else recipe.steps
            result = train(model, filtered, Recipe(**vars(recipe) | {"steps": steps, "seed": seed}))
            if kind == "whole":
                found["whole"].append(accuracies(model, whole.test, DIGIT_LEVEL))
            else:
                found[kind].append(result.test.accuracy)
    return found


def small(kind: str, rehearsal: bool) -> Figures:
    """By seed: the share of a small model's layers that raise the high frequencies; its accuracy.

    Layers are the attention of a ViT, and the 3 x 3 convolutions of stride 1 of a ResNet.
    """
    found: Figures = {"raised": [], "accuracy": []}
    for seed in range(1 if rehearsal else 5):
        torch.manual_seed(seed)
        images, labels, _ = shapes("train", rehearsal)
        test, truth, _ = shapes("test", rehearsal)
        model = new(kind)
        fit(model, images, labels, steps=LONGER * steps_of(kind, rehearsal), seed=seed)
        if kind == "resnet plain":
            raised = convolutions_raise(Subject(model, test[:250])).figure
        else:
            layers = layer_frequencies(model, test[:250], "blocks.?.attention")
            ups = [one.after.high > one.before.high for one in layers.values()]
            raised = sum(map(bool, ups)) / len(ups)
        found["raised"].append(raised)
        right = in_parts(model, test).argmax(1) == truth
        found["accuracy"].append(right.double().mean().item())
    return found


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
def pictures(rehearsal: bool) -> Split:
    """500 test images of CIFAR-10, of all classes, in an order without the classes; or noise."""
    if rehearsal:
        draws = torch.Generator().manual_seed(0)
        return Split(
            torch.randint(256, (20, 3, 32, 32), generator=draws).to(torch.uint8),
            torch.arange(20) % 10,
        )
    found = inputs.pictures("CIFAR10", 500)
    return found[torch.randperm(len(found), generator=torch.Generator().manual_seed(0))]


ROWS: dict[str, Callable[[str, bool], Figures]] = {
    "amplitudes": amplitudes,
    "robustness": robustness,
    "readouts": readouts,
    "digits": digits,
    "shapes": small,
}
NAMES = (
    *(f"amplitudes: {name}" for name in MODELS),
    *(f"robustness: {name}" for name in MODELS),
    *(f"readouts: {name}" for name in MODELS),
    *(f"digits: {family}" for family in FAMILIES),
    "shapes: vit attention",
    "shapes: resnet plain",
)
STUDY = Survey("frequency", NAMES, measure, seeds=SEEDS)
