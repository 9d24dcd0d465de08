"""Packages that only some of minivit needs, and what installs them."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around an import: names in the ModuleNotFoundError the extra that installs the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'{error}. In the repository of minivit: pip install ".[{name}]"', name=error.name
        ) from error
