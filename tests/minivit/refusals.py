"""Tables of calls that must be refused, and of what the refusal says."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Case = tuple[Callable[[], Any], type[Exception], str]  # a call, its error, what that says


def assert_refused(cases: Iterable[Case]) -> None:
    """Every call must raise its error, with a message in which the pattern is found."""
    for call, kind, said in cases:
        try:
            call()
        except kind as error:
            assert re.search(said, str(error)), f"{str(error)!r} does not say {said!r}"
        else:
            pytest.fail(f"nothing refused the call of which should be said {said!r}")
