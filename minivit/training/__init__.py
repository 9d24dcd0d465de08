"""Training: one loop, recipes, augmentation, runs that can be resumed."""

from minivit.training.confusion import confusion
from minivit.training.evaluate import Results, Scores, evaluate, logits_of
from minivit.training.freezing import freeze
from minivit.training.loop import Stopped, train
from minivit.training.recipe import Recipe

__all__ = [
    "Recipe",
    "Results",
    "Scores",
    "Stopped",
    "confusion",
    "evaluate",
    "freeze",
    "logits_of",
    "train",
]
