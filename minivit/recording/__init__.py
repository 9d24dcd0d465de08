"""Activations and attention weights by name, seen and replaced, and parts as functions."""

from minivit.recording.calls import activation, sublayer
from minivit.recording.recorder import record
from minivit.recording.replacing import replace

__all__ = ["activation", "record", "replace", "sublayer"]
