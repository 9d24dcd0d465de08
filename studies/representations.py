"""How alike are the layers of different models, and what can be read from them?

On 1,000 test images of CIFAR-10, localisation on 4,000, since the share of tokens that hit their
own patch grows up to about 2,000. Figures for each quarter of the images show how much depends on
them. ``1 x`` and ``3 x``: models of digits after as many steps, at the best of bracketed rates.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

import minivit
from minivit.model import Model
from minivit.patches import patchify
from minivit.preprocessing import Preprocess
from studies.runner.storage import HERE
from studies.runner.survey import Figures, Survey, plain
from studies.shared import digit_models, inputs
from studies.shared.digit_models import SEEDS, digits, fraction_of, like, points, summary
from studies.shared.lengths import FIRST, at_best_rate
from vitlab.data import Data, load_data
from vitlab.instruments import Localisation, branch_ratios, cka, probes, readable
from vitlab.instruments.representations import representations
from vitlab.training import Recipe, evaluate
from vitlab.training.run import Run

VIT, CLASS, MIXER, RESNET = (f"cifar10_{x}" for x in ("vit_gap", "vit_cls", "mixer", "resnet"))
UNTRAINED = [f"untrained {x}" for x in ("vit", "mixer", "resnet", "vit without residuals")]
TAPS = ("", ".norm1", ".attention", ".norm2", ".mlp.activation", ".mlp")  # of a block


def between() -> Figures:
    """CKA of the layers of a ViT with those of a ResNet."""
    vit, resnet = loaded(VIT), loaded(RESNET)
    images = vit.preprocess(inputs.shuffled("CIFAR10", 1000).images)  # the ResNet's is the same
    return layers(vit, images, other=resnet, other_names=points(resnet))


def measure(name: str) -> Figures:
    """The figures of one model."""
    train, test = (inputs.shuffled("CIFAR10", 1000, part) for part in ("train", "test"))
    model = loaded(name)
    images, few = (model.preprocess(part.images) for part in (test, train))
    figures = layers(model, images)
    if name not in UNTRAINED:
        read = probes(model, (few, train.labels), (images, test.labels), *points(model))
        figures["accuracy"] = [layer.accuracy for layer in read.values()]
    if name in (VIT, CLASS, MIXER, "untrained vit", "untrained mixer"):
        ratio = branch_ratios(model, images[:200]).ratio.mean(1)
        figures["ratios"] = ratio.view(-1, 2)  # [blocks, 2]: attention or mixing, and MLP
    if name in (VIT, CLASS, RESNET):
        last = len(figures["cka"]) - 2  # the first map stands before the blocks
        # In the ResNet those of 8 x 8 positions, as in the ViT.
        blocks = [f"blocks.{i}" for i in ((last - 1, last) if name == RESNET else (0, 2, last))]
        many = model.preprocess(inputs.shuffled("CIFAR10", 4000).images)
        places = {block: located(model, many, block) for block in blocks}
        figures["places"] = {block: summary(whole) for block, (whole, _) in places.items()}
        figures["hits"] = places[blocks[-1]][1]  # from each quarter alone
        figures["read"] = {
            block: summary(readable(model, few[:500], images[:250], block, components=4))
            for block in (blocks[0], blocks[-1])
        }
    if name in (VIT, CLASS):
        figures["taps"] = taps(model, images)
    return figures


def taps(model: Model, images: Tensor) -> dict[str, list[float]]:
    """By place within a block: mean CKA between blocks, from each quarter of the images."""
    quarters = [cka(model, q, *(f"blocks.?{tap}" for tap in TAPS)) for q in images.chunk(4)]
    table = {}
    for tap in TAPS:
        rows = [i for i, row in enumerate(quarters[0].rows) if row == f"{row[:8]}{tap}"]
        pairs = [quarter.values[rows][:, rows] for quarter in quarters]
        table[tap] = [((x.sum() - x.trace()) / (len(x) * (len(x) - 1))).item() for x in pairs]
    return table


def located(model: Model, images: Tensor, name: str) -> tuple[Localisation, list[float]]:
    """Localisation by CKA of all images at once, and the share of hits in each quarter of them.

    Not the mean over batches: near ties between a patch and its neighbour need every pair.
    """
    parts = [representations(model, some, (name,))[name] for some in images.split(500)]
    x = torch.cat(parts).float()
    x = x[:, -64:] if x.ndim == 3 else x.flatten(2).mT  # [n, 64, dim], without a class token
    size = math.isqrt(images[0].shape[1:].numel() // x.shape[1])
    y = patchify(images, size).float()
    tables = [grid_cka(a, b) for a, b in ((x, y), *zip(x.chunk(4), y.chunk(4), strict=True))]
    whole, *quarters = (
        Localisation(t.unflatten(1, (8, 8)).unflatten(0, (8, 8)), t[:0].view(0, 8, 8))
        for t in tables
    )
    return whole, [quarter.hits.double().mean().item() for quarter in quarters]


def grid_cka(x: Tensor, y: Tensor) -> Tensor:
    """Debiased CKA of every place ``[n, N, p]`` with every patch ``[n, N, q]``: ``[N, N]``."""
    (n, count, p), q = x.shape, y.shape[2]
    x, y = x - x.mean(0), y - y.mean(0)
    both = x.flatten(1).T @ y.flatten(1)  # [N * p, N * q]
    between = both.view(count, p, count, q).double().square().sum((1, 3))

    def alone(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of each place: squared norms [n, N], of K with an empty diagonal the sums [N]."""
        norms = z.double().square().sum(2)
        products = [(a.T @ a).double().square().sum() for a in z.unbind(1)]
        return norms, -norms.sum(0), torch.stack(products)

    (kx, sx, xx), (ky, sy, yy) = alone(x), alone(y)

    # The tables are of centred numbers: a row of K sums to 0, less its diagonal entry.
    def hsic(trace: Tensor, level: Tensor, rows: Tensor) -> Tensor:
        return trace - rows + level / ((n - 1) * (n - 2)) - 2 / (n - 2) * rows

    top = hsic(between, sx[:, None] * sy, kx.T @ ky)
    left = hsic(xx, sx.square(), kx.square().sum(0))
    right = hsic(yy, sy.square(), ky.square().sum(0))
    return top / (left[:, None] * right).sqrt()


def layers(model: Model, images: Tensor, **other: Any) -> Figures:
    """CKA of layers, from minibatches of all images and from each quarter of them alone."""
    quarters = images.chunk(4)  # 250 images each
    return {
        "cka": cka(model, quarters, *points(model), **other).values,
        "quarters": [cka(model, quarter, *points(model), **other).values for quarter in quarters],
    }


def loaded(name: str) -> Model:
    if name in UNTRAINED:
        torch.manual_seed(0)
        model = minivit.create(f"{name.split()[1]}_32px").eval()
        if name.endswith("without residuals"):
            model = minivit.remove(model, "residual")
        model.preprocess = loaded(VIT).preprocess
        return model
    return minivit.load(name)


def model_of(kind: str) -> tuple[str, dict[str, Any], int]:
    return digit_models.MODELS.get(kind, digit_models.MODELS["vit"])


def longer(kind: str, times: int) -> Figures:
    """What is compared of models of digits, after ``times`` as many steps."""
    name = f"representations {kind}, {times} x"
    found = at_best_rate(partial(grown, kind, times), SEEDS, FIRST, name)
    return found | {"steps": times * model_of(kind)[2]}


def grown(kind: str, times: int, rate: float, seed: int) -> Figures:
    """Scores of a model, and what is compared of it: at its end, of the longest on the way, too.

    Of ``few``, which has a tenth of the digits, and of ``vit`` a ViT of the next seed is the twin.
    """
    whole, twin = load_data("DIGITS"), None
    if kind in ("vit", "few"):
        best = rate
        if kind == "few":
            best = STUDY.stored(HERE)[f"vit, {times} x"]["rate"]
        twin = twin_of(times, best, (seed + 1) % len(SEEDS))
    data = fraction_of(whole, 0.1, seed) if kind == "few" else whole
    run = training(kind, data, times, rate, seed)
    curve = []
    for part in range(1, PARTS + 1):
        while run.step < part * run.steps // PARTS:
            run.advance()
        if part == PARTS or times == LONGEST:
            model = run.average.model
            loss = -evaluate(model, run.data.train).log_likelihood
            curve.append([run.step, loss, compared(model, twin, whole)])
    scores = evaluate(model, whole.validation)
    return plain({
        "accuracy": evaluate(model, whole.test).accuracy,
        "validation": scores.accuracy, "likelihood": scores.log_likelihood,
        "train_loss": loss, "value": curve[-1][2],
    } | ({"curve": curve} if len(curve) > 1 else {}))  # fmt: skip


@cache
def twin_of(times: int, rate: float, seed: int) -> Model:
    run = training("vit", load_data("DIGITS"), times, rate, seed)
    while run.step < run.steps:
        run.advance()
    return run.average.model


def training(kind: str, data: Data, times: int, rate: float, seed: int) -> Run:
    name, changes, steps = model_of(kind)
    recipe = Recipe(steps=times * steps, batch_size=64, learning_rate=rate, average=0.9, seed=seed)
    torch.manual_seed(seed)
    model = minivit.create(name, **changes)
    model.preprocess = Preprocess((8, 8), (8, 8), mean=data.mean, std=data.std)
    return Run(model, data, recipe)


def compared(model: Model, twin: Model | None, whole: Data) -> list[float]:
    """How much more alike neighbouring blocks are inside stages of two than across a border; of the
    first block and the last, CKA with a twin, and how often probes are right."""
    few, images = model.preprocess(whole.train.images), model.preprocess(whole.test.images)
    v = cka(model, images, "blocks.?").values
    figures = [v[[0, 2, 4], [1, 3, 5]].mean() - v[[1, 3], [2, 4]].mean()]
    if twin is not None:
        figures += like(model, twin, images).diagonal()[[1, 6]]
        sides = (few, whole.train.labels), (images, whole.test.labels)
        read = probes(model, *sides, "blocks.0", "blocks.5")
        figures += [torch.tensor(layer.accuracy) for layer in read.values()]
    return [figure.item() for figure in figures]


LONGEST, PARTS = 3, 10  # times as many steps, with so many parts after which models are compared
ROWS: dict[str, Callable[[], Figures]] = {"vit and resnet": between, "digits": digits}
ROWS |= {name: partial(measure, name) for name in (VIT, CLASS, MIXER, RESNET, *UNTRAINED)}
KINDS = "vit", "few", "resnet", "pit"  # few after vit, whose rate it reads
ROWS |= {f"{kind}, {n} x": partial(longer, kind, n) for n in (1, LONGEST) for kind in KINDS}
STUDY = Survey("representations", ROWS, SEEDS)
