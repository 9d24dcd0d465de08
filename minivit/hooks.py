"""Hooks for the length of a block, in one thread and task, on a model that others may be running.

A hook is registered on the module, which all share, so everybody's calls reach it; it acts only in
the thread, and of coroutines in the task, that made it. Torch lists a module's hooks in one step of
the interpreter, so they may come and go while another thread runs the model.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock, get_ident
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

_lock = RLock()  # torch numbers hooks by a counter that two threads can read at once
_watching: WeakSet[Callable[..., Any]] = WeakSet()  # hooks that see what those that change give
# What has been entered here and not left, outermost first; None is left behind by what was left
# before what it encloses.
_entered: ContextVar[tuple[object | None, ...]] = ContextVar("entered", default=())


@contextmanager
def block() -> Iterator[None]:
    """A block of code that must end before those that enclose it, or there is a RuntimeError."""
    mark = object()
    at = _enter(mark)
    try:
        yield
    finally:
        if not _leave(at, mark):
            raise RuntimeError(
                "expected the last block of record or replace that was entered here to be left "
                "first: an earlier one was left, or one of another task"
            )


def _enter(mark: object) -> int:
    entered = _entered.get()
    _entered.set((*entered, mark))
    return len(entered)


def _leave(at: int, mark: object) -> bool:
    """Whether the mark was the innermost."""
    entered = _entered.get()
    if entered[at : at + 1] != (mark,):
        return False
    inside = entered[at + 1 :]
    # Those inside keep their places.
    _entered.set((*entered[:at], None, *inside) if inside else entered[:at])
    return not any(inside)


@contextmanager
def before(module: nn.Module, hook: Callable[[nn.Module, Any, Any], Any]) -> Iterator[None]:
    """Calls ``hook(module, args, kwargs)`` before each call made here of the module.

    Compiled modules run uncompiled until the block ends: compiled code calls no new hooks.
    """
    yield from _standing(
        module, hook, lambda own: module.register_forward_pre_hook(own, with_kwargs=True)
    )


@contextmanager
def after(
    module: nn.Module,
    hook: Callable[[nn.Module, Any, Any], Any],
    *,
    always: bool = False,
    changes: bool = False,
) -> Iterator[None]:
    """Calls ``hook(module, args, output)`` after each call made here of the module.

    With ``changes`` what the hook returns replaces the output, and hooks without see that, also
    those of blocks entered before. With ``always`` it is also called if the module raises. Copies
    of the module do not call it.
    """

    def register(own: Callable[..., Any]) -> Any:
        handle = module.register_forward_hook(own, always_call=always)
        if not changes:
            _watching.add(own)
            return handle
        for key, other in list(module._forward_hooks.items()):
            if other in _watching:
                module._forward_hooks.move_to_end(key)  # type: ignore[attr-defined]
        return handle

    yield from _standing(module, hook, register)


def _standing(
    module: nn.Module, hook: Callable[..., Any], register: Callable[[Callable[..., Any]], Any]
) -> Iterator[None]:
    thread, at = get_ident(), len(_entered.get())

    def own(runs: nn.Module, *call: Any) -> Any:
        here = runs is module and get_ident() == thread and _entered.get()[at : at + 1] == (own,)
        return hook(runs, *call) if here else None

    with uncompiled():
        with _lock:
            handle = register(own)
        _enter(own)
        try:
            yield
        finally:
            _leave(at, own)
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
