"""The files of a training, which may be killed at any moment: its state and its log.

The state is written under another name and renamed, so the last whole one is always there. It
holds the lines of the log, so that a log which ran ahead of it is corrected when training resumes.
"""

import hashlib
import io
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from minivit.families import family
from minivit.files import MODEL, fields_of, fingerprint, read_pickle, reason, replacing, save
from minivit.model import Model
from vitlab.data.dataset import Data
from vitlab.extras import extra
from vitlab.training.confusion import Confusion, as_csv, by_class, matrix_rows
from vitlab.training.freezing import frozen
from vitlab.training.recipe import Recipe
from vitlab.training.run import Run

STATE, LOG, CARD = "state.pt", "log.jsonl", "card.md"
CONFUSION, CLASSES = "confusion.csv", "classes.csv"
LOCK = ".lock"


def identity(
    model: Model,
    data: Data,
    recipe: Recipe,
    start: str | None = None,
    teacher: Model | None = None,
) -> dict[str, dict[str, Any]]:
    """Model, data, recipe and teacher of a training, which must be the same to resume it.

    The images enter as a hash, which takes about a second for each gigabyte.
    """
    splits = (data.train, data.validation, data.test)
    content = hashlib.sha256()
    for split in splits:
        for tensor in (split.images, split.labels):
            content.update(tensor.contiguous().numpy().data)
    made_of = {"family": family(model.config), **fields_of(model.config)}
    if start:
        made_of["start"] = start
    if still := frozen(model):
        made_of["frozen"] = still
    if teacher is not None:
        made_of["teacher"] = fingerprint(teacher.state_dict(), {})[:16]
    described = {
        "name": data.name,
        "classes": list(data.classes),
        "pictures": [len(split) for split in splits],
        "content": content.hexdigest()[:16],
    }
    return _plain({"model": made_of, "data": described, "recipe": asdict(recipe)})


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields in JSON's types: NumPy's scalars could not be read back from a state."""
    return dict(json.loads(json.dumps(fields)))


class Folder:
    """The files of the training with an :func:`identity`; :meth:`held` makes the folder."""

    def __init__(self, path: Path, identity: dict[str, dict[str, Any]]) -> None:
        self.path = path
        self.identity = identity

    @contextmanager
    def held(self) -> Iterator[None]:
        """Makes the folder and locks it against other trainings, until this process ends."""
        with extra("train"):
            from filelock import FileLock, Timeout
        lock = FileLock(self.path / LOCK, blocking=False)
        with _explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except Timeout:
                raise ValueError(
                    f"another training is writing in {self.path}: wait for its end, or give "
                    "another folder"
                ) from None
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file; the lock does not need it to
                (self.path / LOCK).unlink()
            lock.release()

    def open(self, resume: bool) -> dict[str, Any] | None:
        """Gives the state to resume from, or None; nothing in it is executed.

        Raises:
            ValueError: There is a training and ``resume`` is false, or another one, or a broken
                file.
        """
        state = self._state()
        model = (self.path / MODEL).exists()
        there = [name for name, is_there in ((STATE, state), (MODEL, model)) if is_there]
        if there and not resume:
            raise ValueError(
                f"{self.path} already holds {' and '.join(there)}: resume to continue it, or "
                "give another folder to begin anew"
            )
        if there == [MODEL]:
            raise ValueError(
                f"{self.path} holds a model and no state to resume from: give another folder"
            )
        if state and (differences := _differences(_plain(state["identity"]), self.identity)):
            raise ValueError(
                f"{self.path} holds another training: {'; '.join(differences)}. Give what it was "
                "begun with to go on with it, or another folder to begin anew"
            )
        return state

    def _state(self) -> dict[str, Any] | None:
        """Reads the state; None where there is none or no step was taken."""
        path = self.path / STATE
        if not path.exists():
            return None
        try:
            state: dict[str, Any] = read_pickle(path)
            return state if state["step"] and state["identity"] else None
        except Exception as error:  # broken files fail in many ways, in zip, pickle or torch
            raise ValueError(
                f"expected the whole state of a training at {path}; reading it failed: "
                f"{reason(error)}"
            ) from error

    def begin(self, run: Run) -> None:
        """Makes the files those of the run: a killed one may have left others."""
        with _explained(self.path):
            for name in (STATE, LOG, MODEL, CARD, CONFUSION, CLASSES):
                for scratch in self.path.glob(f".{name}.*"):
                    shutil.rmtree(scratch, ignore_errors=True)
            self._write(LOG, "".join(map(_encoded, run.lines)))
        self.keep(run)

    def log(self, line: dict[str, Any]) -> None:
        """Adds a line to the log, in one write."""
        with _explained(self.path), (self.path / LOG).open("a") as file:
            file.write(_encoded(line))

    def keep(self, run: Run, results: dict[str, Any] | None = None) -> None:
        """Saves the state of the run, and its results at the end."""
        state = run.state_dict() | {"identity": self.identity, "results": results}
        content = io.BytesIO()  # to memory first: torch calls a full disk a RuntimeError
        torch.save(state, content)
        with _explained(self.path), replacing(self.path / STATE) as scratch:
            scratch.write_bytes(content.getbuffer())

    def finish(
        self, run: Run, model: Model, results: dict[str, Any], matrix: Confusion, card: str
    ) -> None:
        """Writes the model, its card, its confusion matrix, the log's last line, and the state."""
        with _explained(self.path):
            save(model, self.path / MODEL)
            self._write(CARD, card)
            self._write(CONFUSION, as_csv(matrix_rows(matrix, run.data.classes)))
            self._write(CLASSES, as_csv(by_class(matrix, run.data.classes)))
            lines = [*run.lines, {"step": run.step, **results, "seconds": round(run.seconds, 2)}]
            self._write(LOG, "".join(map(_encoded, lines)))
        self.keep(run, results)

    def _write(self, name: str, text: str) -> None:
        with replacing(self.path / name) as scratch:
            scratch.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kept = (folder / STATE).exists()
        raise OSError(
            f"cannot write in {folder}: {error.strerror or error}"
            + (". What was saved there before is whole: resume to continue from it" if kept else "")
        ) from error


def _differences(saved: dict[str, dict[str, Any]], wanted: dict[str, dict[str, Any]]) -> list[str]:
    found = []
    for part, fields in wanted.items():
        there = saved[part]
        for field in there | fields:
            old, new = there.get(field), fields.get(field)
            if old != new:
                found.append(f"the {part}'s {field} is {old!r} there, {new!r} here")
    return found


def _encoded(line: dict[str, Any]) -> str:
    return json.dumps(line) + "\n"
