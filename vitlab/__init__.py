"""The book's laboratory: instruments for any vision transformer, and what trains and compares them.

The instruments are here by name: ``vitlab.rollout(model, images)``. The packages ``claims``,
``data``, ``figures``, ``inversion``, ``krylov`` and ``training`` load when touched.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vitlab.convert.huggingface import from_huggingface as from_huggingface
from vitlab.convert.timm import from_timm as from_timm
from vitlab.instruments import *  # noqa: F403

_WHEN_TOUCHED = {"claims", "data", "figures", "inversion", "krylov", "training"}

if TYPE_CHECKING:  # which then still finds names that there are not
    from vitlab import claims, data, figures, inversion, krylov, training  # noqa: F401
else:

    def __getattr__(name: str) -> Any:
        if name in _WHEN_TOUCHED:
            return import_module(f"vitlab.{name}")
        raise AttributeError(f"module 'vitlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(globals().keys() | _WHEN_TOUCHED)
