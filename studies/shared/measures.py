"""What studies measure of trained models besides their scores."""

from functools import cache

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from minivit.model import Model
from studies.shared.training import outputs
from vitlab.data import Data, Split, load_data

FEW = 2000  # images that a linear map is fitted on, and as many to test it


@cache
def _shapes() -> Data:
    return load_data("SHAPES")


def transfer(model: Model) -> float:
    """Accuracy on SHAPES of a linear map fitted on what the model's head reads."""
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    train, test = (
        (features(model, model.preprocess(part.images[:FEW])), part.labels[:FEW].numpy())
        for part in (_shapes().train, _shapes().test)
    )
    return float(linear.fit(*train).score(*test))


def features(model: Model, images: Tensor) -> np.ndarray:
    """The inputs of the head, ``[n, dim]``, for images as the model reads them."""
    head, model.head = model.head, nn.Identity()
    try:
        return outputs(model.eval(), images).numpy()
    finally:
        model.head = head


def confidence(model: Model, split: Split) -> float:
    """The mean of the largest probability: the accuracy that the model predicts for itself."""
    logits = outputs(model.eval(), model.preprocess(split.images))
    return logits.double().softmax(1).amax(1).mean().item()
