"""Training: one loop, recipes, augmentation, runs that can be resumed."""

from vitlab import boundary
from vitlab.training.evaluate import Results, Scores, confusion, evaluate, logits_of
from vitlab.training.loop import Stopped, train
from vitlab.training.optimiser import freeze
from vitlab.training.recipe import Recipe

__all__ = ["Recipe", "Results", "Scores", "Stopped", "confusion", "evaluate", "freeze"]
__all__ += ["logits_of", "train"]
globals().update(boundary.guarded(globals()))
