"""The process that checks the answers of one notebook; it reads them from its standard input.

Started by ``course.grading.grade`` alone, with Python's ``-I``, so that neither the environment nor
the folder decides what is imported: ``course`` and ``minivit`` are those of the grader's checkout.
It writes one line of JSON for what it lacks of isolation, then one for each exercise as it is done,
so that what comes later cannot take away what was found before.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from course.grading import isolation

# Imported here once, where an answer needs them, as each call of it is a copy of this process.
TRUSTED = {
    "course.handout",
    "einops",
    "matplotlib",
    "numpy",
    "scipy",
    "skimage",
    "sklearn",
    "torchvision",
    "minivit",
    "vitlab",
}


def main() -> None:
    """Check the answers of a request: ``answers`` (exercise -> source), and the limits."""
    request = json.load(sys.stdin)
    lacking = isolation.enter(Path(request["scratch"]), map(Path, request["hidden"]))
    # A copy closes all files but its own pipe, so this one is never an answer's.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    isolation.hide_memory()
    os.chdir(request["scratch"])

    import torch

    import course.check  # noqa: F401

    torch.set_num_threads(1)
    print(json.dumps({"lacking": lacking}), file=out, flush=True)
    for name, source in request["answers"].items():
        _import_what_it_needs(source)
        found = examine(name, source, request["seconds"], request["megabytes"])
        print(json.dumps({"exercise": name} | found), file=out, flush=True)


def examine(name: str, source: str, seconds: float, megabytes: int) -> dict:
    """Check one answer: state, message, and how many expectations it met."""
    from course.check.attempt import NotAttempted, NotYet
    from course.check.exercise import EXERCISES, double_precision
    from course.grading.remote import RemoteAttempt, Stopped

    attempt = RemoteAttempt(_defining(name, source), seconds, megabytes)
    try:
        with double_precision():
            EXERCISES[name].examine(attempt)
        state, message = "passed", ""
    except NotAttempted:
        state, message = "open", ""
    except NotYet as reason:
        state, message = "failed", str(reason)
    except Stopped as reason:
        state, message = "stopped", str(reason)
    except Exception as error:  # in the check itself, which met what nobody has thought of
        state, message = "failed", f"The check cannot go on: {type(error).__name__}: {error}."
    return {"state": state, "message": message, "right": attempt.right}


def _defining(name: str, source: str) -> Callable[[], Callable]:
    """What a copy does to have the student's function."""

    def define() -> Callable:
        import linecache

        import torch

        from course.check.attempt import NotYet, describe

        _take_away("course.check", "course.claims", "course.grading")
        filename = f"<{name}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        namespace: dict = {"__name__": "__main__"}
        torch.set_default_dtype(torch.float32)  # as in the notebook; the check has float64
        try:
            exec(compile(source, filename, "exec"), namespace)
        except Exception as error:
            said = describe(error)
            raise NotYet(f"What the function needs cannot be defined. {said}") from error
        finally:
            torch.set_default_dtype(torch.float64)
        return namespace[name]

    return define


def _take_away(*packages: str) -> None:
    """In a copy: make importing these raise."""
    for name in list(sys.modules):
        if any(f"{name}.".startswith(f"{package}.") for package in packages):
            sys.modules[name] = None  # type: ignore[assignment]
    for package in packages:
        within, _, name = package.rpartition(".")
        vars(sys.modules[within]).pop(name, None)  # "from course import check" looks here first


def _import_what_it_needs(source: str) -> None:
    for name in sorted(TRUSTED):
        if name in source:
            try:
                __import__(name)
            except ImportError:
                continue
