"""Figures for pages and notebooks: a style, heat maps over pictures, and a slider of frames."""

from minivit.figures.frames import Frames
from minivit.figures.overlay import heat, overlay

__all__ = ["Frames", "heat", "overlay"]
