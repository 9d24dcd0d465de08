"""A training between two steps, and the step."""

import copy
import math
import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from minivit.data.dataset import Data
from minivit.networks.model import Model
from minivit.training.augment import augment, mixup
from minivit.training.evaluate import evaluate
from minivit.training.optimiser import Average, adamw, schedule
from minivit.training.recipe import Recipe

ORDER, STEP = 0, 1  # streams of random numbers that never meet


def draws_of(seed: int, stream: int, number: int) -> np.random.Generator:
    """Random numbers that are a function of the seed and the number of an epoch or a step.

    So there is no generator whose state would have to be saved.
    """
    return np.random.default_rng([seed, stream, number])


class Run:
    """A model in training, after any number of steps.

    Args:
        model: What is trained, in place; it has its ``preprocess``.
        data: What it is trained on, of the model's size, channels and classes.
        recipe: How.

    Attributes:
        step: Steps taken.
        steps: Steps in all.
        epoch_steps: Steps in an epoch. Pictures left over wait for the next epoch's order.
        lines: What the log says of each epoch.
        seconds: How long it took, the scoring included.
    """

    def __init__(self, model: Model, data: Data, recipe: Recipe) -> None:
        self.model, self.data, self.recipe = model, data, recipe
        self.device = next(model.parameters()).device
        self.batch = min(recipe.batch_size, len(data.train))
        self.epoch_steps = len(data.train) // self.batch
        self.optimiser = adamw(model, recipe)
        self.average = Average(model, recipe.average)
        self.step, self.seconds = 0, 0.0
        self.steps = recipe.steps or max(1, round(recipe.epochs * self.epoch_steps))
        self.lines: list[dict[str, Any]] = []
        self.sums = [0.0, 0, 0, 0.0]  # of the epoch so far: loss, right, pictures, seconds
        mean, std = (torch.tensor(v, device=self.device) for v in (data.mean, data.std))
        self.mean, self.std = mean.view(-1, 1, 1), std.view(-1, 1, 1)

    def advance(self) -> tuple[float, float]:
        """Takes a step.

        Returns:
            Mean loss and accuracy of the epoch so far, on the pictures as they were altered.

        Raises:
            FloatingPointError: The loss or its gradient is not finite; the weights are as before.
        """
        start, recipe = time.perf_counter(), self.recipe
        images, targets = self._batch()
        rate = recipe.learning_rate * schedule(self.step, self.steps, recipe.warmup)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        half = recipe.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half):
            logits = self.model.train()(images)
        logits = logits.float()
        loss = F.cross_entropy(logits, targets)
        self.optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        if not math.isfinite(loss.item() + norm.item()):
            raise self._diverged(
                f"the loss is {loss.item():.3g} and its gradient's norm {norm.item():.3g} at step "
                f"{self.step + 1} of {self.steps}"
            )
        self.optimiser.step()
        self.average.update(self.model, self.step)
        self.step += 1
        right = (logits.argmax(1) == targets.argmax(1)).sum().item()
        taken = loss.item() * len(images), right, len(images), time.perf_counter() - start
        self.sums = [a + b for a, b in zip(self.sums, taken, strict=True)]
        self.seconds += taken[3]
        return self.sums[0] / self.sums[2], self.sums[1] / self.sums[2]

    def check_finite(self) -> None:
        """Refuses weights that a step has spoilt, before they replace a good state.

        Raises:
            FloatingPointError: A weight or its average is not finite.
        """
        for model in (self.model, self.average.model):
            if not all(tensor.isfinite().all() for tensor in model.state_dict().values()):
                raise self._diverged(
                    f"a weight is not finite after step {self.step} of {self.steps}"
                )

    def _diverged(self, what: str) -> FloatingPointError:
        half = self.recipe.precision == "bfloat16"
        return FloatingPointError(
            f"{what}: try a learning rate below {self.recipe.learning_rate:g}"
            + (", or precision float32" if half else "")
        )

    def _batch(self) -> tuple[Tensor, Tensor]:
        """Pictures ``[batch, channels, height, width]`` and targets ``[batch, classes]``."""
        recipe, (epoch, place) = self.recipe, divmod(self.step, self.epoch_steps)
        order = draws_of(recipe.seed, ORDER, epoch).permutation(len(self.data.train))
        chosen = self.data.train[torch.from_numpy(order[place * self.batch :][: self.batch])]
        draws = draws_of(recipe.seed, STEP, self.step)
        torch.manual_seed(int(draws.integers(2**63)))  # for dropout
        generator = torch.Generator().manual_seed(int(draws.integers(2**63)))
        images = augment(chosen.images.to(self.device).float() / 255, recipe, generator)
        classes = len(self.data.classes)
        targets = F.one_hot(chosen.labels.to(self.device), classes).float()
        targets = targets.lerp(torch.full_like(targets, 1 / classes), recipe.label_smoothing)
        return mixup((images - self.mean) / self.std, targets, recipe.mixup, draws)

    @property
    def epoch_ends(self) -> bool:
        """Whether the last step was its epoch's last, or the last of all."""
        return self.step % self.epoch_steps == 0 or self.step == self.steps

    def finish_epoch(self) -> dict[str, Any]:
        """Scores the average on the validation part; gives the epoch's line for the log."""
        start = time.perf_counter()
        scores = evaluate(self.average.model, self.data.validation, self.batch)
        self.seconds += time.perf_counter() - start
        loss, right, pictures, seconds = self.sums
        self.sums = [0.0, 0, 0, 0.0]
        self.lines.append({
            "epoch": len(self.lines) + 1, "step": self.step, "loss": loss / pictures,
            "accuracy": right / pictures, "validation": asdict(scores),
            "images_per_second": round(pictures / seconds, 1), "seconds": round(self.seconds, 2),
        })  # fmt: skip
        return self.lines[-1]

    def steps_within(self, minutes: float, rounds: int = 5) -> int:
        """Counts the steps that fit, scoring included, by timing some on a copy."""
        recipe = replace(self.recipe, minutes=None, steps=2 * rounds)
        trial = Run(copy.deepcopy(self.model), self.data, recipe)
        for _ in range(rounds):
            trial.advance()
        warm = trial.seconds
        for _ in range(rounds):
            trial.advance()
        step, before = (trial.seconds - warm) / rounds, trial.seconds
        trial.finish_epoch()
        return max(1, int(60 * minutes / (step + (trial.seconds - before) / self.epoch_steps)))

    def state_dict(self) -> dict[str, Any]:
        """All that a step depends on or changes."""
        return {
            "weights": self.model.state_dict(),
            "average": self.average.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            **{key: getattr(self, key) for key in KEPT},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Puts the run where the state was taken."""
        self.model.load_state_dict(state["weights"])
        self.average.model.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        for key in KEPT:
            setattr(self, key, state[key])


KEPT = ("step", "steps", "seconds", "sums", "lines")
