"""Training from the first step to the model card, across interruptions."""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from minivit.files import MODEL, save
from minivit.model import Model
from minivit.patches import pair
from minivit.preprocessing import Preprocess
from vitlab.data.dataset import Data
from vitlab.training.card import card
from vitlab.training.checks import check, check_teacher
from vitlab.training.confusion import confusion
from vitlab.training.evaluate import Results, Scores, evaluate, logits_of, scores_of
from vitlab.training.progress import Progress
from vitlab.training.recipe import Recipe
from vitlab.training.run import Run
from vitlab.training.state import Folder, identity


class Stopped(KeyboardInterrupt):
    """A training was interrupted by the signal ``signum``; it is saved and can be resumed."""

    def __init__(self, signum: int, step: int, steps: int) -> None:
        super().__init__(f"stopped after step {step} of {steps}, which is saved")
        self.signum = signum


def train(
    model: Model,
    data: Data,
    recipe: Recipe | None = None,
    *,
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    save_every: float = 60,
    progress: bool = False,
    command: str | None = None,
    start: str | None = None,
    teacher: Model | None = None,
) -> Results:
    """Trains a model in place, and scores it.

    At the end the model has the moving average of its weights at the last step (no epoch is chosen
    by a score), is in evaluation mode, and has ``preprocess``, ``classes`` and ``licence``. On one
    thread of one machine, the same recipe gives the same bits, uninterrupted or resumed.

    Args:
        model: Of the data's image size, channels and classes, on the device to train on. Parameters
            that require no gradient stay as they are, and so do the statistics of norms beside
            them: :func:`~vitlab.training.freezing.freeze` chooses some.
        out: A folder for ``model.safetensors``, ``card.md``, ``log.jsonl``, ``confusion.csv`` and
            ``classes.csv`` of the test part, and ``state.pt``, from which training can resume.
            Default: nothing is written.
        resume: Continue from ``out`` if it holds a state, else start. A finished training is not
            repeated.
        save_every: Seconds between two states. On SIGINT and SIGTERM the state is saved too.
        progress: Whether to show a bar or, without a terminal, a line for each epoch.
        command: The command line, for the card.
        start: Where the model's trained weights come from, if it has any; resuming needs the same,
            and the same frozen.
        teacher: A trained model whose decisions on each augmented batch count as much as the labels
            (hard distillation, Touvron et al. 2021); it stays as it is.

    Raises:
        TypeError: The model, or the teacher, is not one of minivit's.
        ValueError: Model, teacher and data do not fit, the model cannot be trained, ``out`` holds a
            training and ``resume`` is false, or it holds another one, or another process trains in
            it.
        FloatingPointError: The loss became infinite or not a number. What was saved stays.
        OSError: Something could not be written. What was saved before stays.
        Stopped: A signal came; the state is saved. Only with ``out``.
    """
    recipe = recipe or Recipe()
    if not save_every >= 0:
        raise ValueError(f"expected seconds, at least 0, between two states: got {save_every}")
    check(model, data)
    if teacher is not None:
        check_teacher(teacher, data)
    folder = (
        None if out is None else Folder(Path(out), identity(model, data, recipe, start, teacher))
    )
    with folder.held() if folder else nullcontext():
        saved = folder.open(resume) if folder else None
        size = pair(model.config.image_size)
        model.preprocess = Preprocess(size, resize=size, mean=data.mean, std=data.std)
        model.classes = data.classes
        model.licence = data.licence
        finished = saved["results"] if saved else None
        device = next(model.parameters()).device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            run = Run(model, data, recipe, teacher)
            if saved:
                run.load_state_dict(saved)
            elif recipe.minutes is not None:
                run.steps = run.steps_within(recipe.minutes)
            if not finished:
                _take_steps(run, folder, save_every, progress)
        model.load_state_dict(run.average.model.state_dict())
        model.eval()
        if folder and finished:
            if not (folder.path / MODEL).exists():
                save(model, folder.path / MODEL)
            scores = {part: Scores(**found) for part, found in finished.items()}
            return Results(**scores, lines=run.lines, steps=run.steps, seconds=run.seconds)
        validation = evaluate(model, data.validation, run.batch)
        logits = logits_of(model, data.test, run.batch)
        test = scores_of(logits, data.test.labels)
        results = Results(validation, test, run.lines, run.steps, run.seconds)
        if folder:
            parts = {"validation": asdict(validation), "test": asdict(test)}
            matrix = confusion(logits, data.test.labels)
            text = card(model, data, recipe, results, matrix, command)
            folder.finish(run, model, parts, matrix, text)
        return results


def _take_steps(run: Run, folder: Folder | None, save_every: float, progress: bool) -> None:
    """Takes the steps that are left, and saves."""
    epochs = math.ceil(run.steps / run.epoch_steps)
    with _signals(folder is not None) as seen, Progress(run.step, run.steps, progress) as bar:
        if folder:
            folder.begin(run)
        saved = time.monotonic()
        while run.step < run.steps:
            bar.step(*run.advance())
            if run.epoch_ends:
                line = run.finish_epoch()
                bar.line(line, epochs)
                if folder:
                    folder.log(line)
            if seen or run.step == run.steps or time.monotonic() - saved >= save_every:
                run.check_finite()
                if folder:
                    folder.keep(run)
                saved = time.monotonic()
            if seen:
                raise Stopped(seen[0], run.step, run.steps)


@contextmanager
def _signals(caught: bool) -> Iterator[list[int]]:
    """Gives a list to which a SIGINT or SIGTERM adds its number; a second one interrupts."""
    seen: list[int] = []
    before: dict[int, Any] = {}

    def note(number: int, frame: object) -> None:
        seen.append(number)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    # Python lets no other thread catch signals.
    if caught and threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, note)
    try:
        yield seen
    finally:
        restore()
