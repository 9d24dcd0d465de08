"""Figures for pages and notebooks: a style, heat maps, galleries, and a slider of frames."""

from vitlab.extras import extra

with extra("figures"):
    from vitlab.figures.attention import attention_overlay, look, rollout_overlay
    from vitlab.figures.frames import Frames
    from vitlab.figures.gallery import gallery
    from vitlab.figures.overlay import heat, overlay
    from vitlab.figures.scores import confusion_figure, curve

__all__ = [
    "Frames",
    "attention_overlay",
    "confusion_figure",
    "curve",
    "gallery",
    "heat",
    "look",
    "overlay",
    "rollout_overlay",
]
