"""Figures for pages and notebooks: a style, heat maps, galleries, and a slider of frames."""

from minivit._extras import extra

with extra("figures"):
    from minivit.figures.attention import attention_overlay, rollout_overlay
    from minivit.figures.frames import Frames
    from minivit.figures.gallery import gallery
    from minivit.figures.look import look
    from minivit.figures.overlay import heat, overlay
    from minivit.figures.scores import confusion_figure, curve

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
