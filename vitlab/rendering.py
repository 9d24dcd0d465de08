"""Texts longer than a line: what a template in ``vitlab/templates`` says of some values."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined  # which comes with torch

_environment = Environment(
    loader=PackageLoader("vitlab"),
    autoescape=lambda name: ".html" in (name or ""),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def rendered(template: str, **values: Any) -> str:
    """A template, ``"card.md"``, with these values in their places; in HTML they are escaped."""
    return _environment.get_template(f"{template}.j2").render(values)
