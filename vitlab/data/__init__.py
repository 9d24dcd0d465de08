"""Data sets: digits, CIFAR-10, folders of images, generated shapes, photographs."""

from vitlab.data.loading import Data, Split, load_data

__all__ = ["Data", "Split", "load_data"]
