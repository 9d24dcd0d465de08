"""The state of a training after any number of steps, and the step."""

import copy
import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from minivit.model import Model
from minivit.patches import pair
from vitlab.calls import expect
from vitlab.data.dataset import Data
from vitlab.training.augment import Images, augment, mixup
from vitlab.training.evaluate import evaluate
from vitlab.training.optimiser import Average, adamw, frozen, schedule
from vitlab.training.recipe import Recipe

ORDER, STEP = 0, 1  # streams of random numbers that never meet
WEIGHT = 0.5  # of the loss on a teacher's decisions, beside that on the labels
FIELDS = ("step", "steps", "seconds", "sums", "lines")  # of a run's state


def check(model: Model, data: Data, role: str = "model") -> None:
    """Refuses a model that does not fit the data, and a teacher that does not know its classes."""
    config = model.config
    sizes = (config.channels, *pair(config.image_size), config.classes)
    wanted = (*data.train.images.shape[1:], len(data.classes))
    what = f"a {role} for (channels, height, width, classes)"
    expect(sizes == wanted, f"{what} {wanted}", f"one for {sizes}")
    same = role == "model" or tuple(model.classes or ()) == tuple(data.classes)
    expect(same, f"a teacher of {data.classes}", f"one of {model.classes}")


class Run:
    """A model in training, in place, after any number of steps; it has its ``preprocess``."""

    def __init__(
        self, model: Model, data: Data, recipe: Recipe, teacher: Model | None = None
    ) -> None:
        self.model, self.data, self.recipe = model, data, recipe
        self.device = next(model.parameters()).device
        self.mean, self.std = self._channels(data.mean), self._channels(data.std)
        self.teacher = teacher
        if teacher is not None:
            self.teacher = copy.deepcopy(teacher).to(self.device).eval().requires_grad_(False)
        self.batch = min(recipe.batch_size, len(data.train))
        self.epoch_steps = len(data.train) // self.batch  # images left over wait for the next epoch
        self.optimiser = adamw(model, recipe)
        self.average = Average(model, recipe.average)
        modules = dict(model.named_modules())
        # Without dropout, and their norms keep their statistics.
        self.frozen = [modules[name] for name in frozen(model) if name in modules]
        self.step = 0  # steps taken
        self.steps = recipe.steps or max(1, round(recipe.epochs * self.epoch_steps))
        self.seconds = 0.0  # scoring included
        self.lines: list[dict[str, Any]] = []  # of the log, one for each epoch
        self.sums = [0.0, 0, 0, 0.0]  # of the epoch so far: loss, right, images, seconds

    def _channels(self, values: tuple[float, ...]) -> Float[Tensor, "channels 1 1"]:
        return torch.tensor(values, device=self.device).view(-1, 1, 1)

    def advance(self) -> tuple[float, float]:
        """Takes a step, if all is finite; gives the epoch's mean loss and accuracy so far."""
        start = time.perf_counter()
        recipe = self.recipe
        images, targets = self._batch()
        rate = recipe.learning_rate * schedule(self.step, self.steps, recipe.warmup)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.model.train()
        for module in self.frozen:
            module.eval()
        half = recipe.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half):
            logits = self.model(images)
            decisions = self._decisions(images)
        logits = logits.float()
        loss = F.cross_entropy(logits, targets)
        if decisions is not None:
            loss = loss.lerp(F.cross_entropy(logits, decisions), WEIGHT)
        self.optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        self._check_finite(torch.stack([loss.detach(), norm]), "the loss or its gradient")
        self.optimiser.step()
        self.average.update(self.model, self.step)
        self.step += 1
        right = (logits.argmax(1) == targets.argmax(1)).sum().item()
        duration = time.perf_counter() - start
        new = loss.item() * len(images), right, len(images), duration
        self.sums = [a + b for a, b in zip(self.sums, new, strict=True)]
        self.seconds += duration
        return self.sums[0] / self.sums[2], self.sums[1] / self.sums[2]

    def _check_finite(self, numbers: Tensor, what: str) -> None:
        if not numbers.isfinite().all():
            half = ", or precision float32" if self.recipe.precision == "bfloat16" else ""
            advice = f"try a learning rate below {self.recipe.learning_rate:g}{half}"
            when = f"after step {self.step} of {self.steps}"
            raise FloatingPointError(f"{what} is not finite {when}: {advice}")

    @torch.no_grad()
    def _decisions(self, images: Images) -> Int64[Tensor, " batch"] | None:
        """The classes that the teacher sees in a batch, normalised as its own images."""
        if self.teacher is None:
            return None
        own: Any = self.teacher.preprocess
        mean, std = self._channels(own.mean), self._channels(own.std)
        return self.teacher((images * self.std + self.mean - mean) / std).argmax(1)

    def _batch(self) -> tuple[Images, Float[Tensor, "batch classes"]]:
        recipe = self.recipe
        epoch, position = divmod(self.step, self.epoch_steps)
        # Random numbers depend on the seed and the epoch or step alone: there is nothing to save.
        order = np.random.default_rng([recipe.seed, ORDER, epoch]).permutation(len(self.data.train))
        chosen = self.data.train[torch.from_numpy(order[position * self.batch :][: self.batch])]
        draws = np.random.default_rng([recipe.seed, STEP, self.step])
        torch.manual_seed(int(draws.integers(2**63)))  # for dropout
        generator = torch.Generator().manual_seed(int(draws.integers(2**63)))
        images = augment(chosen.images.to(self.device).float() / 255, recipe, generator)
        classes = len(self.data.classes)
        targets = F.one_hot(chosen.labels.to(self.device), classes).float()
        targets = targets.lerp(torch.full_like(targets, 1 / classes), recipe.label_smoothing)
        return mixup((images - self.mean) / self.std, targets, recipe.mixup, draws)

    @property
    def epoch_ends(self) -> bool:
        """Whether the step taken was its epoch's last, or the last of all."""
        return self.step % self.epoch_steps == 0 or self.step == self.steps

    def finish_epoch(self) -> dict[str, Any]:
        """Scores the averaged model on the validation part; gives the epoch's line of the log."""
        start = time.perf_counter()
        scores = evaluate(self.average.model, self.data.validation, self.batch)
        self.seconds += time.perf_counter() - start
        loss, right, pictures, seconds = self.sums
        self.sums = [0.0, 0, 0, 0.0]
        line = {
            "epoch": len(self.lines) + 1,
            "step": self.step,
            "loss": loss / pictures,
            "accuracy": right / pictures,
            "validation": asdict(scores),
            "images_per_second": round(pictures / seconds, 1),
            "seconds": round(self.seconds, 2),
        }
        self.lines.append(line)
        return line

    def steps_within(self, minutes: float, rounds: int = 5) -> int:
        """Counts the steps that fit, scoring included, by timing some on a copy."""
        recipe = replace(self.recipe, minutes=None, steps=2 * rounds)
        trial = Run(copy.deepcopy(self.model), self.data, recipe, self.teacher)
        times = []
        for _ in range(2 * rounds):
            trial.advance()
            times.append(trial.seconds)
        trial.finish_epoch()
        step = (times[-1] - times[rounds - 1]) / rounds  # the first ones warm up
        step += (trial.seconds - times[-1]) / self.epoch_steps
        return max(1, int(60 * minutes / step))

    def state_dict(self) -> dict[str, Any]:
        """Everything that a step depends on or changes; a weight that is not finite is refused."""
        weights, average = self.model.state_dict(), self.average.model.state_dict()
        for tensor in (*weights.values(), *average.values()):
            self._check_finite(tensor, "a weight")
        fields = {key: getattr(self, key) for key in FIELDS}
        optimiser = self.optimiser.state_dict()
        return {"weights": weights, "average": average, "optimiser": optimiser, **fields}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Returns the run to where the state was saved."""
        self.model.load_state_dict(state["weights"])
        self.average.model.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        for key in FIELDS:
            setattr(self, key, state[key])
