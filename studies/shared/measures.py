"""What studies measure of trained models besides their scores."""

from functools import cache

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from minivit.model import Model
from vitlab.data import Data, Split, load_data

FEW = 2000  # images that a linear map is fitted on, and as many to test it


@cache
def _shapes() -> Data:
    return load_data("SHAPES")


def transfer(model: Model, pictures: int = FEW) -> float:
    """Accuracy on SHAPES of a linear map fitted on what the model's head reads.

    The model, for colour images of 32 x 32 pixels, stays as it is: it has never seen SHAPES.
    """
    data = _shapes()
    few = torch.arange(pictures)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    train, test = (
        (features(model, part.images), part.labels.numpy())
        for part in (data.train[few], data.test[few])
    )
    return float(linear.fit(*train).score(*test))


@torch.no_grad()
def features(model: Model, images: Tensor) -> np.ndarray:
    """The inputs of the head, ``[n, dim]``, for uint8 images ``[n, channels, height, width]``."""
    head, model.head = model.head, nn.Identity()
    try:
        chunks = [model.eval()(model.preprocess(chunk)) for chunk in images.split(250)]
    finally:
        model.head = head
    return torch.cat(chunks).numpy()


@torch.no_grad()
def confidence(model: Model, split: Split) -> float:
    """The mean of the largest probability: the accuracy that the model predicts for itself."""
    chunks = [model.eval()(model.preprocess(chunk)) for chunk in split.images.split(250)]
    return torch.cat(chunks).double().softmax(1).amax(1).mean().item()
