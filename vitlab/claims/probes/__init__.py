"""What the book's claims ask of one model: a file for each kind of instrument.

Importing this package fills :data:`vitlab.claims.probe.PROBES`.
"""

from vitlab.claims.probe import PROBES
from vitlab.claims.probes import (
    attention,
    embedding,
    frequency,
    invertibility,
    mixing,
    positions,
    representations,
    smoothing,
)

__all__ = [
    "PROBES",
    "attention",
    "embedding",
    "frequency",
    "invertibility",
    "mixing",
    "positions",
    "representations",
    "smoothing",
]
