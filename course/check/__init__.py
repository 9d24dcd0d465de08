"""Checks for the exercises: ``check.masked_softmax(masked_softmax)`` in a notebook's cell.

``chapter_NN.py`` holds a chapter's checks, and importing it is all it takes to have them here.
"""

from importlib import import_module
from pathlib import Path

from course.check.exercise import EXERCISES
from course.handout import solution, wait
from minivit.import_torchvision import patch_torchvision_import

patch_torchvision_import()  # every chapter imports this first, and some torchvision after it

for _path in sorted(Path(__file__).parent.glob("chapter_*.py")):
    import_module(f"{__name__}.{_path.stem}")

globals().update(EXERCISES)
__all__ = ["solution", *EXERCISES]

wait()  # in notebooks that are handed out
