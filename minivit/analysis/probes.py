"""What a linear classifier can read from each layer: linear probes, after Alain & Bengio (2016)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minivit.analysis.layout import Grid
from minivit.analysis.representations import patch_grid, places, representations
from minivit.analysis.ridge import ridge
from minivit.analysis.running import batches

READ = ("class", "mean")


@dataclass(frozen=True)
class Probe:
    """How well one layer can be read."""

    accuracy: float  # on the test pictures, which no choice has seen
    validation: float  # on the training pictures, each left out of the fit in turn
    penalty: float  # chosen on those


def probe(train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> Probe:
    """Fits a linear classifier to features and scores it on others.

    It is ridge regression from features to classes (1 for the right one, 0 for the rest), as in the
    few-shot evaluation of Dosovitskiy et al. (2021): closed form, so nothing is left to a learning
    rate. Every feature is first divided by its deviation on the training pictures.

    Args:
        train: Features ``[n, features]`` and the numbers of the classes, int64 ``[n]``.
        test: Likewise, of other pictures.

    Raises:
        ValueError: Shapes or types that do not fit, fewer than two classes to train on, or as for
            :func:`~minivit.analysis.ridge.ridge`.
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
    deviation = x.double().std(0)
    deviation = torch.where(deviation > 0, deviation, 1)
    fit = ridge(x / deviation, F.one_hot(labels, classes))
    right = fit(x_test / deviation).argmax(1) == test_labels
    known = fit.left_out.argmax(1) == labels
    return Probe(right.double().mean().item(), known.double().mean().item(), fit.penalty[0].item())


def read_out(x: Tensor, read: str = "mean", grid: Grid | None = None) -> Tensor:
    """One vector for each picture from what a layer gives.

    Args:
        x: Tokens ``[batch, tokens, dim]``, a map ``[batch, dim, rows, columns]``, or vectors
            ``[batch, dim]``, which are returned as they are.
        read: ``"class"``, the first token, or ``"mean"``, of the patches' tokens or of the map.
        grid: Rows and columns of patches, for tokens.

    Raises:
        ValueError: Another way to read, no class token, or tokens that do not fit the grid.
    """
    if read not in READ:
        raise ValueError(f"read is {' or '.join(READ)}: got {read!r}")
    if x.ndim == 2:
        return x
    extra, patches = places(x, grid)
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
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    *names: str,
    read: str = "mean",
    grid: Grid | None = None,
    batch_size: int = 256,
) -> dict[str, Probe]:
    """Fits and scores a :func:`probe` at each of a model's layers::

        probes(model, (images, labels), (test_images, test_labels), "blocks.?")

    Args:
        model: Any module. It is used in its mode of evaluation, and comes back as it was.
        train: Pictures ``[n, channels, height, width]`` and the numbers of their classes, int64
            ``[n]``.
        test: Likewise, other pictures.
        *names: The layers, as for :func:`~minivit.recording.record`.
        read: As for :func:`read_out`.
        grid: Rows and columns of patches. Default: those of the model's last convolution.
        batch_size: Pictures in one call of the model. Default: 256.

    Returns:
        A probe for every layer, by name, in the order in which they run.

    Raises:
        ValueError: No pictures, or none at a time, or not finite; or as for :func:`probe` and
            :func:`read_out`.
        TypeError, LookupError, RuntimeError: As for :func:`~minivit.recording.record`.
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
