"""A process that checks the answers of one notebook.

``examined`` starts it, with Python's ``-I``, so that neither the environment nor the folder decides
what is imported: ``course`` and ``minivit`` are those of the grader's checkout. It reads the
answers from its standard input. It writes one line of JSON for what it lacks of isolation, then one
for each exercise as it is done, so that what comes later cannot take away what was found before.
"""

import json
import linecache
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import torch

from course import pieces
from course.check.attempt import NotAttempted, NotYet, describe
from course.check.exercise import EXERCISES
from course.grading import isolation
from course.grading.answers import REFUSED, ROOT, SOLVES, Answer
from course.grading.remote import Refused, RemoteAttempt, Stopped

START = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    "from course.grading.examiner import main; main()"
)
TO_IMPORT = 60  # seconds that an examiner may take besides the answers
# All that checking needs of the folders that are hidden.
PACKAGES = [ROOT / package for package in ("course", "minivit", "vitlab")]
NEEDED = [*PACKAGES, Path(sys.prefix), Path(sys.base_prefix)]
# Imported here once, where an answer needs them, as each call of it is a copy of this process.
TRUSTED = (
    *("course.handout", "einops", "matplotlib", "minivit", "numpy", "scipy", "skimage", "sklearn"),
    *("torchvision", "vitlab"),
)


class CannotGrade(Exception):
    """It is the grader, not a student, that something is wrong with."""


class Outcome(NamedTuple):
    """What came of an answer: passed, failed, stopped or open, and how many expectations it met."""

    state: str
    message: str = ""
    met: int = 0


def examined(
    answers: Iterable[Answer], seconds: float, megabytes: int, hidden: Iterable[Path] = ()
) -> tuple[dict[str, Outcome], tuple[str, ...]]:
    """Check answers in one examiner, which sees the system's files and packages, and none beside.

    Returns the outcome of each answer that has a source; and what this machine lacks to shut an
    examiner in.
    """
    sources = {each.exercise: each.source for each in answers if each.source}
    if not sources:
        return {}, ()
    before, lacking = isolation.namespaces()
    scratch = Path(tempfile.mkdtemp(prefix="grade-")).resolve()
    private = (path for path in Path("/").iterdir() if path.name not in isolation.SYSTEM)
    own = (Path.home(), ROOT, *private, *hidden)
    folders = {folder.resolve() for folder in own if folder.is_dir() and not folder.is_symlink()}
    shut = [str(folder) for folder in folders] if before else None
    try:
        request = json.dumps([sources, seconds, megabytes, str(scratch), shut])
        within = len(sources) * (seconds + 10) + TO_IMPORT
        lines, complaint = _run(before, request, scratch, within)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if not lines:
        raise CannotGrade(f"no examiner starts here: {complaint or 'it took too long'}")
    lost = Outcome("stopped", "The process that checks ended before this one's turn was over.")
    outcomes = {name: Outcome(*outcome) for name, *outcome in lines[1:]}
    return dict.fromkeys(sources, lost) | outcomes, (*lacking, *lines[0])


def _run(
    before: tuple[str, ...], request: str, scratch: Path, seconds: float
) -> tuple[list[list], str]:
    """Start an examiner; the lines that it wrote, and the last of what it complained of."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    home = {"HOME": str(scratch), "TMPDIR": str(scratch), "MPLBACKEND": "agg"}
    try:
        process = subprocess.run(
            [*before, sys.executable, "-I", "-c", START],
            input=request.encode(),
            capture_output=True,
            cwd=scratch,
            env={"PATH": os.defpath, "LANG": "C.UTF-8"} | home | one,
            start_new_session=True,
            timeout=seconds,
        )
        output, errors = process.stdout, process.stderr
    except subprocess.TimeoutExpired as expired:
        output, errors = expired.stdout or b"", expired.stderr or b""
    lines = [json.loads(line) for line in output.splitlines() if line.endswith(b"]")]
    return lines, b"".join(errors.strip().splitlines()[-1:]).decode(errors="replace")


def main() -> None:
    """Check the answers of a request: the source for each exercise, the limits, the folders."""
    sources, seconds, megabytes, scratch, hidden = json.load(sys.stdin)
    # A copy closes all files but its own pipe, so this one is never an answer's.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    lacking: list[str] = []
    if hidden is not None:
        needed = [*NEEDED, *isolation.libraries()]
        lacking = isolation.protect_files(Path(scratch), map(Path, hidden), needed)
    isolation.hide_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which an answer could send
    os.chdir(scratch)
    torch.set_num_threads(1)
    print(json.dumps(lacking), file=out, flush=True)
    for name, source in sources.items():
        for package in TRUSTED:
            if package in source:
                with suppress(ImportError):
                    __import__(package)
        outcome = examine(name, source, seconds, megabytes)
        print(json.dumps([name, *outcome]), file=out, flush=True)


def examine(name: str, source: str, seconds: float, megabytes: int) -> Outcome:
    """Check one answer."""
    define = partial(_define, name, source, _shortcuts(name, source))
    attempt = RemoteAttempt(define, seconds, megabytes)
    try:
        EXERCISES[name].examine(attempt)
        state, message = "passed", ""
    except NotAttempted:
        state, message = "open", ""
    except (NotYet, Stopped) as reason:
        states: dict[type, str] = {Stopped: "stopped", Refused: "refused"}
        state, message = states.get(type(reason), "failed"), str(reason)
    except Exception as error:  # in the check itself, which met what nobody has thought of
        state, message = "failed", f"The check cannot go on: {type(error).__name__}: {error}."
    return Outcome(state, message, attempt.scored)


def _shortcuts(name: str, source: str) -> list[tuple[object, str, str]]:
    """Where what solves an exercise in one call can be had: an owner, its attribute, its name."""
    paths = [path for path in REFUSED.get(name, ()) if path.split(".")[0] in source]
    found = {id(pkgutil.resolve_name(path)): path for path in paths if "." in path}
    modules = [module for module in sys.modules.values() if isinstance(module, ModuleType)]
    every = ((owner, *item) for owner in modules for item in list(vars(owner).items()))
    return [(owner, key, found[id(value)]) for owner, key, value in every if id(value) in found]


def _define(name: str, source: str, shortcuts: Iterable[tuple[object, str, str]]) -> Callable:
    """In a copy: the student's function."""
    for owner, key, path in shortcuts:
        setattr(owner, key, partial(_refuse, path))
    if name in pieces.PIECES:  # mine.load(name) has it from there
        book = pieces.sections(pieces.BOOK)
        taken = f"# Chapter {pieces.PIECES[name]}: {name}, refused.\n"
        book[name] = f"{taken}from course.book_vit import {name}\n"
        pieces.BOOK = pieces.joined(book)
    _take_away("course.check", "course.claims", "course.grading")
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace: dict = {"__name__": "__main__"}
    torch.set_default_dtype(torch.float32)  # as in the notebook; the check has float64
    try:
        exec(compile(source, filename, "exec"), namespace)
    except Exception as error:
        reason = f"What the function needs cannot be defined. {describe(error)}"
        raise NotYet(reason) from error
    finally:
        torch.set_default_dtype(torch.float64)
    return namespace[name]


def _refuse(path: str, *_: object, **__: object) -> None:
    raise Refused(f"It calls {path}, {SOLVES}.")


def _take_away(*packages: str) -> None:
    """In a copy: make importing these raise."""
    for name in list(sys.modules):
        if name.startswith(packages):
            sys.modules[name] = None  # type: ignore[assignment]
    for package in packages:
        within, _, name = package.rpartition(".")
        vars(sys.modules[within]).pop(name, None)  # "from course import check" looks here first
