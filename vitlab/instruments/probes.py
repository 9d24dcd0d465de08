"""Linear probes: what a linear classifier can read from each layer, after Alain & Bengio (2016)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64, Shaped
from torch import Tensor, nn

from vitlab.instruments.grids import Grid
from vitlab.instruments.representations import by_position, patch_grid, representations
from vitlab.instruments.ridge import ridge
from vitlab.instruments.running import batches

READ = ("class", "mean")


@dataclass(frozen=True)
class Probe:
    """How well a linear classifier reads one layer."""

    accuracy: float  # on the test images, which no choice has seen
    validation: float  # on the training images, each left out of the fit in turn
    penalty: float  # chosen by validation


def probe(
    train: tuple[Float[Tensor, "train features"], Int64[Tensor, "train"]],
    test: tuple[Float[Tensor, "test features"], Int64[Tensor, "test"]],
) -> Probe:
    """Fits a linear classifier to features and their classes, and scores it on others.

    It is ridge regression from features to one-hot classes, as in the few-shot evaluation of
    Dosovitskiy et al. (2021): in closed form, without a learning rate. Every feature is first
    divided by its standard deviation on the training images.
    """
    for name, (x, labels) in ("train", train), ("test", test):
        if labels.dtype != torch.int64 or x.ndim != 2 or labels.shape != x.shape[:1] or not len(x):
            raise ValueError(
                f"expected features [n, features] and labels int64 [n] in {name}: got "
                f"{list(x.shape)} and {labels.dtype} {list(labels.shape)}"
            )
    (x, labels), (x_test, test_labels) = train, test
    if x.shape[1] != x_test.shape[1]:
        raise ValueError(
            f"expected as many features in test as in train, {x.shape[1]}: got {x_test.shape[1]}"
        )
    classes = int(labels.max()) + 1
    if labels.min() < 0 or len(labels.unique()) < 2:
        raise ValueError(
            f"expected two classes or more to train on: got {labels.unique().tolist()}"
        )
    std = x.double().std(0)
    std = torch.where(std > 0, std, 1)
    fit = ridge(x / std, F.one_hot(labels, classes))
    right = fit(x_test / std).argmax(1) == test_labels
    known = fit.left_out.argmax(1) == labels
    return Probe(right.double().mean().item(), known.double().mean().item(), fit.penalty[0].item())


def read_out(
    x: Float[Tensor, "batch ..."], read: str = "mean", grid: Grid | None = None
) -> Float[Tensor, "batch dim"]:
    """One vector for each image from a layer's output: tokens, a feature map, or vectors already.

    Args:
        read: ``"class"``, the first token, or ``"mean"``, of the patches' tokens or of the map.
        grid: Rows and columns of patches, for tokens.
    """
    if read not in READ:
        raise ValueError(f"read is {' or '.join(READ)}: got {read!r}")
    if x.ndim == 2:
        return x
    extra, patches = by_position(x, grid)
    if read == "mean":
        return patches.flatten(1, 2).mean(1)
    if not extra.shape[1]:
        raise ValueError(
            f"there is no class token to read: all are of {patches.shape[1]} x {patches.shape[2]} "
            "patches"
        )
    return extra[:, 0]


def probes(
    model: nn.Module,
    train: tuple[Shaped[Tensor, "train channels height width"], Int64[Tensor, "train"]],
    test: tuple[Shaped[Tensor, "test channels height width"], Int64[Tensor, "test"]],
    *names: str,
    read: str = "mean",
    grid: Grid | None = None,
    batch_size: int = 256,
) -> dict[str, Probe]:
    """Fits and scores a :func:`probe` at each of a model's layers::

        probes(model, (images, labels), (test_images, test_labels), "blocks.?")

    Layers are named as for :func:`~minivit.recording.record`, and come in the order they run.

    Args:
        read: ``"class"``, the first token, or ``"mean"``, of the patches' tokens or of a map.
        grid: Rows and columns of patches. Default: those of the model's last convolution.
    """
    grid = grid or patch_grid(model, train[0])
    features: list[dict[str, list[Tensor]]] = [{}, {}]  # by layer, batch after batch
    for side, (images, _) in zip(features, (train, test), strict=True):
        for batch in batches(images, batch_size)[1]:
            for name, x in representations(model, batch, names).items():
                side.setdefault(name, []).append(read_out(x, read, grid).cpu())
    return {
        name: probe(
            (torch.cat(features[0][name]), train[1]), (torch.cat(features[1][name]), test[1])
        )
        for name in features[0]
    }
