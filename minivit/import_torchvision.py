"""torchvision, also beside a CPU build of torch.

On Linux the package registry has torchvision only as a CUDA build. Beside a CPU build of torch its
compiled library cannot load, and its Python files stop at two operators that this library would
have declared. With these declared, its models, weights and data sets work: they are Python alone.
After :func:`patch_torchvision_import` a plain ``import torchvision`` works too, and timm's own.
"""

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

# Kept for as long as the process lives: the declarations go when the library object does.
_declared: list[Any] = []


class Loader(SourceFileLoader):
    """Runs a module, and again with the two operators declared if it stops for want of them."""

    def exec_module(self, module: ModuleType) -> None:
        try:
            super().exec_module(module)
        except RuntimeError as error:
            if "torchvision::nms" not in str(error) or _declared:
                raise
            import torch

            library = torch.library.Library("torchvision", "FRAGMENT")
            for name in ("nms", "qnms"):
                library.define(f"{name}{SIGNATURE}")
            _declared.append(library)
            super().exec_module(module)


class Finder(MetaPathFinder):
    """Finds torchvision where it is, to be run by :class:`Loader`."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        spec = PathFinder.find_spec(name, path) if name == "torchvision" else None
        if spec and spec.origin and type(spec.loader) is SourceFileLoader:
            spec.loader = Loader(name, spec.origin)
        return spec


def patch_torchvision_import() -> None:
    """Makes ``import torchvision`` work in this process, whatever build of torch there is."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


def imported() -> Any:
    """torchvision. ModuleNotFoundError, where it is missing, says what installs it."""
    patch_torchvision_import()
    try:
        return import_module("torchvision")
    except ModuleNotFoundError as error:
        if error.name != "torchvision":
            raise
        raise ModuleNotFoundError(f"{error}: {advice()}", name=error.name) from error


def advice(*packages: str) -> str:
    """The command that installs torchvision, and packages that need it, beside this torch."""
    import torch

    version = torch.__version__.partition("+")[0]  # without it, pip would take another torch
    return " ".join(["pip install", f"torch=={version} torchvision", *packages])
