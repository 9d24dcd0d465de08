"""Training: one loop, recipes, augmentation, runs that can be resumed."""

from vitlab.training.confusion import confusion
from vitlab.training.evaluate import Results, Scores, evaluate, logits_of
from vitlab.training.freezing import freeze
from vitlab.training.loop import Stopped, train
from vitlab.training.recipe import Recipe

__all__ = ["Recipe", "Results", "Scores", "Stopped", "confusion", "evaluate", "freeze"]
__all__ += ["logits_of", "train"]
