"""Data sets, and the training of models on them."""

from minivit.training.data import Data, Split, load_data
from minivit.training.evaluate import Scores, evaluate
from minivit.training.loop import Results, Stopped, train
from minivit.training.recipe import Recipe

__all__ = [
    "Data",
    "Recipe",
    "Results",
    "Scores",
    "Split",
    "Stopped",
    "evaluate",
    "load_data",
    "train",
]
