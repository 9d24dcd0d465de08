"""Activations and attention weights by name, and parts as functions, from any ``nn.Module``."""

from minivit.recording.calls import activation, sublayer
from minivit.recording.recorder import record
from minivit.recording.replacing import replace

__all__ = ["activation", "record", "replace", "sublayer"]
