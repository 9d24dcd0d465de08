"""Activations and attention weights by name, and parts as functions, from any ``nn.Module``."""

from minivit.recording.calls import activation, sublayer
from minivit.recording.recorder import record

__all__ = ["activation", "record", "sublayer"]
