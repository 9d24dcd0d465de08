"""What the book's claims ask of one model: a file for each kind of instrument.

Importing this package fills :data:`minivit.audit.probe.PROBES`.
"""

from minivit.audit.probe import PROBES
from minivit.audit.probes import (
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
