"""Training: one loop, recipes, augmentation, runs that can be resumed."""

from minivit.training.evaluate import Results, Scores, evaluate
from minivit.training.loop import Stopped, train
from minivit.training.recipe import Recipe

__all__ = ["Recipe", "Results", "Scores", "Stopped", "evaluate", "train"]
