"""Training from the first step to the model card, across interruptions."""

import math
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from minivit.model import Model
from minivit.patches import pair
from minivit.preprocessing import Preprocess
from vitlab.data.dataset import Data
from vitlab.extras import extra
from vitlab.training.evaluate import Results, confusion, evaluate, logits_of, scores_of
from vitlab.training.recipe import Recipe
from vitlab.training.run import Run, check
from vitlab.training.state import Folder, advice, identity


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
        out: A folder for the model, its card, the log, the tables of the test part, and the state,
            from which training can ``resume``. Default: nothing is written.
        save_every: Seconds between two states; a SIGINT or SIGTERM saves one, too.
        progress: Whether to show a bar or, without a terminal, a line for each epoch.
        command, start: The command line, and whose weights the model begins with, for its card.
        teacher: A trained model for hard distillation (Touvron et al. 2021): its decisions on each
            augmented batch count as much as the labels.
    """
    recipe = recipe or Recipe()
    check(model, data)
    if teacher is not None:
        check(teacher, data, "teacher")
    folder = Folder(Path(out), identity(model, data, recipe, start, teacher)) if out else None
    with folder.lock() if folder else nullcontext():
        state = folder.load(resume) if folder else None
        size = pair(model.config.image_size)
        model.preprocess = Preprocess(size, resize=size, mean=data.mean, std=data.std)
        model.classes, model.licence = data.classes, data.licence
        device = next(model.parameters()).device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            run = Run(model, data, recipe, teacher)
            if state:
                run.load_state_dict(state)
            elif recipe.minutes is not None:
                run.steps = run.steps_within(recipe.minutes)
            _take_steps(run, folder, save_every, progress)
            if progress and (few := advice(run, start)):
                print(few, file=sys.stderr)
        model.load_state_dict(run.average.model.state_dict())
        model.eval()
        validation = evaluate(model, data.validation, run.batch)
        logits = logits_of(model, data.test, run.batch)
        test, matrix = scores_of(logits, data.test.labels), confusion(logits, data.test.labels)
        results = Results(validation, test, matrix, run.lines, run.steps, run.seconds)
        if folder:
            folder.finish(run, results, command, start)
        return results


def _take_steps(run: Run, folder: Folder | None, save_every: float, progress: bool) -> None:
    """Takes the steps that are left, shows them, and saves."""
    with extra("train"):
        from tqdm import tqdm
    hidden = not (progress and sys.stderr.isatty())
    bar = tqdm(total=run.steps, initial=run.step, unit="step", leave=False, disable=hidden)
    saved = time.monotonic()
    with _signals(folder is not None) as signals, bar:
        while run.step < run.steps:
            loss, accuracy = run.advance()
            bar.set_postfix_str(f"loss {loss:.3f}, accuracy {accuracy:.1%}", refresh=False)
            bar.update()
            if run.epoch_ends:
                line = run.finish_epoch()
                report = (
                    f"epoch {line['epoch']}/{math.ceil(run.steps / run.epoch_steps)}  "
                    f"loss {line['loss']:.3f}  accuracy {line['accuracy']:.1%}, "
                    f"held out {line['validation']['accuracy']:.1%}  "
                    f"{line['images_per_second']:.0f} images/s"
                )
                if progress:
                    bar.write(report, file=sys.stderr)
            due = time.monotonic() - saved >= save_every
            if folder and (signals or due or run.step == run.steps):
                folder.save(run)
                saved = time.monotonic()
            if signals:
                raise Stopped(signals[0], run.step, run.steps)


@contextmanager
def _signals(caught: bool) -> Iterator[list[int]]:
    """Gives a list to which a SIGINT or SIGTERM adds its number; a second one interrupts."""
    signals: list[int] = []
    # Python lets no other thread catch signals.
    caught = caught and threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if caught else ()
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}

    def note(number: int, frame: object) -> None:
        signals.append(number)
        signal.signal(number, before[number])

    for number in before:
        signal.signal(number, note)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
