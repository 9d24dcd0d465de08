"""Packages that only some of minivit needs, and what installs them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around an import: names in the ModuleNotFoundError the extra that installs the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'{error}. In the repository of minivit: pip install ".[{name}]"', name=error.name
        ) from error


def installed(names: Iterable[str]) -> dict[str, str]:
    """The versions of those of these packages that are installed."""
    versions = {}
    for name in names:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
