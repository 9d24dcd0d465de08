"""What the modules of ``studies`` define."""

import importlib
import pkgutil

import studies


def every(name):
    """What stands under a name in each module that has it."""
    found = [
        importlib.import_module(f"studies.{m.name}") for m in pkgutil.iter_modules(studies.__path__)
    ]
    return [getattr(module, name) for module in found if hasattr(module, name)]
