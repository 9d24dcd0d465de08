"""Hooks for the length of a block, in one thread, on a model that other threads may be running.

A hook is registered on the module, which all threads share, so every thread calls it; it acts only
in the thread that made it. Torch lists a module's hooks in one step of the interpreter, so they may
come and go while another thread runs the model.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

_lock = RLock()  # torch numbers hooks by a counter that two threads can read at once
_watching: WeakSet[Callable[..., Any]] = WeakSet()  # hooks that see what those that change give


@contextmanager
def before(module: nn.Module, hook: Callable[[nn.Module, Any, Any], Any]) -> Iterator[None]:
    """Calls ``hook(module, args, kwargs)`` before each call that this thread makes of the module.

    Compiled modules run uncompiled until the block ends: compiled code calls no new hooks.
    """
    own = _own(module, hook)
    yield from _standing(lambda: module.register_forward_pre_hook(own, with_kwargs=True))


@contextmanager
def after(
    module: nn.Module,
    hook: Callable[[nn.Module, Any, Any], Any],
    *,
    always: bool = False,
    changes: bool = False,
) -> Iterator[None]:
    """Calls ``hook(module, args, output)`` after each call that this thread makes of the module.

    With ``changes`` what the hook returns replaces the output, and hooks without see that, also
    those of blocks entered before. With ``always`` it is also called if the module raises. Copies
    of the module do not call it.
    """
    own = _own(module, hook)

    def register() -> Any:
        handle = module.register_forward_hook(own, always_call=always)
        if not changes:
            _watching.add(own)
            return handle
        for key, other in list(module._forward_hooks.items()):
            if other in _watching:
                module._forward_hooks.move_to_end(key)  # type: ignore[attr-defined]
        return handle

    yield from _standing(register)


def _own(module: nn.Module, hook: Callable[..., Any]) -> Callable[..., Any]:
    thread = get_ident()

    def own(runs: nn.Module, *call: Any) -> Any:
        return hook(runs, *call) if runs is module and get_ident() == thread else None

    return own


def _standing(register: Callable[[], Any]) -> Iterator[None]:
    with uncompiled():
        with _lock:
            handle = register()
        try:
            yield
        finally:
            with _lock:
                handle.remove()


_blocks = 0
_eager: Any = None


@contextmanager
def uncompiled() -> Iterator[None]:
    """Runs code compiled by ``torch.compile`` uncompiled, in the whole process.

    It lasts until the last of such blocks ends, in any order and in any thread.
    """
    global _blocks, _eager
    with _lock:
        _blocks += 1
        # Without this module nothing is compiled, and it is slow to import.
        if _eager is None and "torch._dynamo" in sys.modules:
            _eager = torch.compiler.set_stance("force_eager")
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks and _eager is not None:
                _eager.__exit__(None, None, None)
                _eager = None
