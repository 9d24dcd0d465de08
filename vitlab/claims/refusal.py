"""Whose an error is: an instrument's refusal, the model's own, or a fault of the audit.

Instruments refuse in errors of Python's own types, and mistakes raise the same. What tells them
apart is where an error comes from: a refusal comes from a ``raise`` statement of our own.
"""

import dis
import re
from pathlib import Path
from types import CodeType, TracebackType

from torch import nn

import minivit

MODELS = Path(minivit.__file__).parent
PACKAGE = MODELS.with_name("vitlab")
MISTAKES = (AssertionError, LookupError)  # from raise statements, too: a wrong name, say
CALL: CodeType = nn.Module._call_impl.__code__  # what runs whenever a module is called
RAISE = dis.opmap["RAISE_VARARGS"]


def refusal(error: Exception) -> str | None:
    """Why a model cannot be asked; None where the audit is at fault, or the memory too small.

    A model that stops while it runs cannot be asked either, whatever it raises: it ran on its
    images before, and what probes give it beside these has their shape or its own tokens'.
    """
    if out_of_memory(error):
        return None
    steps: list[TracebackType] = []
    at = error.__traceback__
    while at is not None:
        steps.append(at)
        at = at.tb_next
    if steps and _ours(steps[-1]) and _raises(steps[-1]) and not isinstance(error, MISTAKES):
        return first_line(error)
    for step in reversed(steps):
        if step.tb_frame.f_code is CALL:
            return f"the model stopped: {named(error)}"
        if _in(step, PACKAGE):
            break
    return None


def first_line(error: Exception) -> str:
    """An error's message in one line, or its type where it has none."""
    return f"{error}".partition("\n")[0] or type(error).__name__


def named(error: Exception) -> str:
    """An error's type and its message, in one line."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def fault(error: Exception) -> str:
    """What to say of an error that is no refusal."""
    if out_of_memory(error):
        return "out of memory: try a smaller --batch-size"
    return f"an error in the audit: {named(error)}"


def out_of_memory(error: Exception) -> bool:
    """Whether the processor or the GPU had too little memory."""
    said = re.search("out of memory|allocate memory", first_line(error))
    return isinstance(error, MemoryError) or said is not None


def _ours(step: TracebackType) -> bool:
    return _in(step, PACKAGE) or _in(step, MODELS)


def _in(step: TracebackType, folder: Path) -> bool:
    return folder in Path(step.tb_frame.f_code.co_filename).parents


def _raises(step: TracebackType) -> bool:
    """Whether an error began in a ``raise`` statement, and not in what an expression does."""
    return step.tb_frame.f_code.co_code[step.tb_lasti] == RAISE
