"""Data sets: digits, CIFAR-10, folders of images, generated shapes, photographs."""

from vitlab import boundary
from vitlab.data.dataset import Data, Split
from vitlab.data.loading import load_data

__all__ = ["Data", "Split", "load_data"]
globals().update(boundary.guarded(globals()))
