"""Figures for pages and notebooks: a style, heat maps, galleries, and a slider of frames."""

from minivit._extras import extra

with extra("figures"):
    from minivit.figures.attention import attention_overlay, rollout_overlay
    from minivit.figures.frames import Frames
    from minivit.figures.gallery import gallery
    from minivit.figures.overlay import heat, overlay

__all__ = ["Frames", "attention_overlay", "gallery", "heat", "overlay", "rollout_overlay"]
