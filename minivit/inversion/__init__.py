"""From a representation back to what it represents."""

from minivit.inversion import exact

__all__ = ["exact"]
