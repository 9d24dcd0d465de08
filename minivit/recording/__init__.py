"""Activations and attention weights by name, and parts as functions, from any ``nn.Module``."""

from minivit.recording.calls import sublayer
from minivit.recording.recorder import record

__all__ = ["record", "sublayer"]
