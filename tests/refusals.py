"""Tables of calls that must be refused, and of what the refusal says."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import jaxtyping
import pytest

# A call, its error if that is no ValueError, and what that says.
Case = tuple[Callable[[], Any], str] | tuple[Callable[[], Any], type[Exception], str]


@contextmanager
def unchecked() -> Iterator[None]:
    """As a user calls minivit: without the checks of types, which would refuse before it does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def assert_refused(cases: Iterable[Case]) -> None:
    """Every call must raise its error, with a message in which the pattern is found."""
    for call, *kinds, said in cases:
        (kind,) = kinds or [ValueError]
        try:
            with unchecked():
                call()
        except kind as error:
            assert re.search(said, str(error)), f"{str(error)!r} does not say {said!r}"
        else:
            pytest.fail(f"nothing refused the call of which should be said {said!r}")
