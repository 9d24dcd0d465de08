"""Figures for pages and notebooks: a style, heat maps, and a slider of frames."""
# ruff: noqa: F401

from vitlab import boundary
from vitlab.extras import extra

with extra("figures"):
    from vitlab.figures.attention import attention_overlay, look, rollout_overlay
    from vitlab.figures.frames import Frames
    from vitlab.figures.overlay import confusion_figure, curve, heat, overlay

globals().update(boundary.guarded(globals()))
__all__ = [name for name, value in globals().items() if callable(value) and name != "extra"]
