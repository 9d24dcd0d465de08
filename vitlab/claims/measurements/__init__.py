"""The measurements of the book's claims on any model: a file for each kind of instrument."""

from vitlab.claims.measurements import (  # noqa: F401
    attention,
    embedding,
    frequency,
    invertibility,
    mixing,
    positions,
    representations,
    smoothing,
)
from vitlab.claims.measuring import MEASUREMENTS

__all__ = ["MEASUREMENTS"]
