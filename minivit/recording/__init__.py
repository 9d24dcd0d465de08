"""Activations and attention weights by name, from any ``nn.Module``."""

from minivit.recording.recorder import record

__all__ = ["record"]
