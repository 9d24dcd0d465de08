"""The files of a training, which may be killed at any moment: each is whole or not there."""

import hashlib
import io
import json
import platform
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import minivit
from minivit.families import family
from minivit.files import MODEL, atomic_write, fields_of, fingerprint, read_pickle, reason, save
from minivit.model import Model
from vitlab.data.dataset import Data
from vitlab.extras import extra
from vitlab.rendering import rendered
from vitlab.training.evaluate import Results, as_csv, by_class, matrix_rows
from vitlab.training.optimiser import frozen
from vitlab.training.recipe import Recipe
from vitlab.training.run import Run

STATE, LOG, CARD = "state.pt", "log.jsonl", "card.md"
CONFUSION, CLASSES = "confusion.csv", "classes.csv"
FEW = 500  # steps: the shortest recipe for a data set of ours takes 570


def write(path: Path, text: str) -> None:
    """Writes a text, whole or not at all."""
    with atomic_write(path) as scratch:
        scratch.write_text(text, encoding="utf-8", errors="backslashreplace")


def identity(
    model: Model, data: Data, recipe: Recipe, start: str | None, teacher: Model | None
) -> dict[str, dict[str, Any]]:
    """Model, data (as a hash), recipe and teacher of a training, the same to resume it."""
    content = hashlib.sha256()
    for split in data.parts:
        for tensor in (split.images, split.labels):
            content.update(tensor.contiguous().numpy().data)
    fields = {
        "model": {
            "family": family(model.config),
            **fields_of(model.config),
            "start": start,
            "frozen": frozen(model) or None,
            "teacher": teacher and fingerprint(teacher.state_dict(), {})[:16],
        },
        "data": {
            "name": data.name,
            "classes": data.classes,
            "pictures": [len(split) for split in data.parts],
            "content": content.hexdigest()[:16],
        },
        "recipe": asdict(recipe),
    }
    return dict(json.loads(json.dumps(fields)))  # NumPy's scalars could not be read from a state


@dataclass
class Folder:
    """The files of the training with an :func:`identity`."""

    path: Path
    identity: dict[str, dict[str, Any]]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Makes the folder and locks it against other trainings, until this process ends."""
        with extra("train"):
            from filelock import FileLock, Timeout
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / ".lock", blocking=False)
        try:
            lock.acquire()
        except Timeout:
            raise ValueError(f"another training is writing in {self.path}: wait for it") from None
        for name in (STATE, LOG, MODEL, CARD, CONFUSION, CLASSES):  # that a killed one was writing
            for scratch in self.path.glob(f".{name}.*"):
                shutil.rmtree(scratch, ignore_errors=True)
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file; the lock does not need it to
                (self.path / ".lock").unlink()
            lock.release()

    def load(self, resume: bool) -> dict[str, Any] | None:
        """The state to resume from, or None; another training there is refused."""
        names = [name for name in (STATE, MODEL) if (self.path / name).exists()]
        if names and (not resume or names == [MODEL]):
            holds = f"already holds {' and '.join(names)}"
            raise ValueError(f"{self.path} {holds}: resume, or give another folder to begin anew")
        if not names:
            return None
        try:
            state: dict[str, Any] = read_pickle(self.path / STATE)
            saved = state["identity"]
        except Exception as error:  # broken files fail in many ways, in zip, pickle or torch
            whole = f"expected the whole state of a training at {self.path / STATE}"
            raise ValueError(f"{whole}: {reason(error)}") from error
        differences = [
            f"the {part}'s {field} is {saved[part].get(field)!r} there, {fields.get(field)!r} here"
            for part, fields in self.identity.items()
            for field in saved[part] | fields
            if saved[part].get(field) != fields.get(field)
        ]
        if differences:
            raise ValueError(f"{self.path} holds another training: {'; '.join(differences)}")
        return state

    def save(self, run: Run) -> None:
        """Saves the log, then the state of the run."""
        content = io.BytesIO()  # to memory first: torch calls a full disk a RuntimeError
        torch.save(run.state_dict() | {"identity": self.identity}, content)
        self._log(run.lines)
        with atomic_write(self.path / STATE) as scratch:
            scratch.write_bytes(content.getbuffer())

    def _log(self, lines: Sequence[dict[str, Any]]) -> None:
        write(self.path / LOG, "".join(json.dumps(line) + "\n" for line in lines))

    def finish(self, run: Run, results: Results, command: str | None, start: str | None) -> None:
        """Writes the model, its card, its confusion matrix, and the last line of the log."""
        save(run.model, self.path / MODEL)
        write(self.path / CARD, card(run, results, command, start))
        write(self.path / CONFUSION, as_csv(matrix_rows(results.confusion, run.data.classes)))
        write(self.path / CLASSES, as_csv(by_class(results.confusion, run.data.classes)))
        scores = {"validation": asdict(results.validation), "test": asdict(results.test)}
        self._log([*run.lines, {"step": run.step, **scores, "seconds": round(run.seconds, 2)}])


def advice(run: Run, start: str | None) -> str:
    """What to try instead of a short training from random weights; nothing for others."""
    if start or run.steps >= FEW:
        return ""
    few = f"{run.steps} steps are few for weights that begin at random"
    return f"{few}: `--from cifar10_vit` begins with trained ones."


def card(run: Run, results: Results, command: str | None, start: str | None) -> str:
    """A model card in Markdown, after Mitchell et al. (2019), "Model Cards for Model Reporting"."""
    settings = asdict(run.recipe)
    if run.recipe.steps or run.recipe.minutes:
        del settings["epochs"]  # which did not count
    functions = {f.__name__: f for f in (by_class, fields_of, frozen, repr, text)}
    return rendered(
        "card.md",
        **functions,
        run=run,
        results=results,
        kind=family(run.model.config),
        parameters=sum(p.numel() for p in run.model.parameters()),
        settings=settings,
        command=command,
        machine=f"{torch.get_num_threads()} threads, {platform.machine()}",
        versions=f"minivit {minivit.__version__}, torch {torch.__version__}",
        advice=advice(run, start),
    )


def text(cell: Any) -> str:
    """A number rounded, and a name without Markdown's marks for a new column or line."""
    text = f"{cell:.4f}" if isinstance(cell, float) else str(cell)
    return text.replace("|", "\\|").replace("\n", "\\n").replace("\r", "\\r")
