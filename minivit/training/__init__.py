"""Training: one loop, recipes, augmentation, runs that go on where they were interrupted."""

from minivit.training.evaluate import Scores, evaluate
from minivit.training.loop import Results, Stopped, train
from minivit.training.recipe import Recipe

__all__ = [
    "Recipe",
    "Results",
    "Scores",
    "Stopped",
    "evaluate",
    "train",
]
