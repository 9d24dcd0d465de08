"""How good a classifier is: how often it is right, and whether it knows how often."""

from dataclasses import dataclass

import torch
from torch import Tensor

from minivit.data.dataset import Split
from minivit.networks.model import Model


@dataclass(frozen=True)
class Scores:
    """What :func:`evaluate` finds.

    Args:
        accuracy: Share of the pictures whose class is the likeliest to the model.
        log_likelihood: Mean logarithm of the probability that it gives to the true class; at most
            0, and -log(classes) for a model that knows nothing.
        calibration_error: As for :func:`calibration_error`.
        pictures: How many were scored.
    """

    accuracy: float
    log_likelihood: float
    calibration_error: float
    pictures: int


@torch.no_grad()
def evaluate(model: Model, split: Split, batch_size: int = 256) -> Scores:
    """Scores a model in float32 on pictures that it prepares itself.

    Args:
        model: In its mode of evaluation while this runs; it comes back in the mode it was in.
            ``model.preprocess`` turns pictures into its input.
        split: uint8 pictures and their labels.
        batch_size: Pictures at a time.

    Raises:
        ValueError: There are no pictures, none at a time, or a label beyond the model's logits.
    """
    if batch_size < 1:
        raise ValueError(f"expected a batch_size of at least 1: got {batch_size}")
    if not len(split):
        raise ValueError("expected pictures to score: got none")
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    try:
        chunks = split.images.split(batch_size)
        logits = torch.cat([model(model.preprocess(chunk.to(device))).cpu() for chunk in chunks])
    finally:
        model.train(was_training)
    if split.labels.max() >= logits.shape[1]:
        raise ValueError(
            f"the model has {logits.shape[1]} classes: got a picture of class "
            f"{split.labels.max().item()}"
        )
    logs = logits.double().log_softmax(1)  # [n, classes]
    return Scores(
        (logs.argmax(1) == split.labels).double().mean().item(),
        logs.gather(1, split.labels[:, None]).mean().item(),
        calibration_error(logs.exp(), split.labels),
        len(split),
    )


def calibration_error(probabilities: Tensor, labels: Tensor, bins: int = 15) -> float:
    """The expected calibration error of Guo et al. (2017), "On Calibration of Modern Networks".

    Pictures are sorted into bins of equal width by the model's confidence, its largest probability.
    In each bin, the mean confidence is compared with the share that was right; the differences are
    averaged, each bin counting as much as it has pictures.

    Args:
        probabilities: ``[n, classes]``, each row summing to 1.
        labels: int64 ``[n]``.
        bins: How many; 15 in the paper.

    Returns:
        From 0, as often right as it is sure, to 1.
    """
    confidence, predicted = probabilities.double().max(1)
    right = (predicted == labels).double()
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1  # (0, 1/15] is the first
    gap = torch.zeros(bins, dtype=torch.float64).index_add(0, place, confidence - right)
    return (gap.abs().sum() / len(labels)).item()
