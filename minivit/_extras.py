"""Packages that not all of minivit needs, and what installs them."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Says of a package that is missing, and imported inside, which of minivit's extras has it.

    Raises:
        ModuleNotFoundError: It is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'{error}. In the repository of minivit: pip install ".[{name}]"', name=error.name
        ) from error
