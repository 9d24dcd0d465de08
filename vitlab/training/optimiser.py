"""Which parameters train and how: frozen parts, AdamW, its schedule, the moving average."""

import copy
import math
from fnmatch import fnmatchcase

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from minivit.model import Model
from minivit.patches import pair
from vitlab.calls import expect
from vitlab.training.recipe import Recipe


def adamw(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019), which decays weights of linear maps and convolutions."""
    maps = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    decaying = {id(m.weight) for m in model.modules() if isinstance(m, maps)}
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if id(p) in decaying], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trained if id(p) not in decaying], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], recipe.learning_rate, fused=True)


def schedule(step: int, steps: int, warmup: float) -> float:
    """The learning rate at a step, counted from 0, as a fraction of its peak.

    It grows linearly over the fraction ``warmup`` of the steps, and falls along a cosine to zero.
    """
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / (rising + 1)
    return (1 + math.cos(math.pi * (step - rising) / (steps - rising))) / 2


class Average:
    """The exponential moving average of a model's weights, and of its norms' statistics.

    The decay is ``min(decay, (1 + step) / (10 + step))``; with ``decay`` 0 it is the last weights.
    """

    def __init__(self, model: Model, decay: float) -> None:
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    def at(self, step: int) -> float:
        """The decay at a step, counted from 0."""
        return min(self.decay, (1 + step) / (10 + step))

    @torch.no_grad()
    def update(self, model: Model, step: int) -> None:
        """Adds the weights after a step, counted from 0."""
        decay = self.at(step)
        new = model.state_dict()
        for key, mean in self.model.state_dict().items():
            if mean.is_floating_point():
                mean.lerp_(new[key], 1 - decay)
            else:  # a norm's count of batches
                mean.copy_(new[key])


def freeze(model: Model, parts: str) -> None:
    """Freezes parts of a model in place: their parameters require no gradient.

    ``parts`` are separated by commas. A number such as ``"4"`` is the first four blocks and all
    that runs before them, ``"backbone"`` all but the head. Others are names in the model, or
    patterns as of files: ``"blocks.[0-3]"``, ``"*.norm1"``. Where one is not there, or nothing is
    left to train, the model is as it was.
    """
    names = [name for name, _ in model.named_parameters()]
    depth = len(list(model.get_submodule("blocks").children()))
    chosen: set[str] = set()
    for part in (part.strip() for part in parts.split(",")):
        if part == "backbone":
            members = {name for name in names if not name.startswith("head.")}
        elif part.isdecimal() and 1 <= int(part) <= depth:
            members = _first(model, int(part))
        else:
            members = {name for name in names if fnmatchcase(f"{name}.", f"{part}.*")}
        tops = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
        known = f"parts to freeze, {tops}, backbone, or 1 to {depth} blocks, not all"
        fits = members and set(names) != chosen | members
        expect(fits, known, f"{part!r} of {parts!r}")
        chosen |= members
    for name in chosen:
        model.get_parameter(name).requires_grad_(False)


@torch.no_grad()
def _first(model: Model, count: int) -> set[str]:
    """The parameters of the first blocks, and of all that runs before them."""
    trial, begun = copy.deepcopy(model).eval(), list[nn.Module]()
    pixels = torch.zeros(1, model.config.channels, *pair(model.config.image_size))
    with register_module_forward_pre_hook(lambda module, args: begun.append(module)):
        trial(pixels.to(next(trial.parameters())))
    blocks = list(trial.get_submodule("blocks").children())
    before = [m for m in begun[: begun.index(blocks[count - 1])] if m is not trial]
    modules = [m for m in before if not set(m.modules()) & set(blocks)] + blocks[:count]
    ids = {id(p) for m in modules for p in m.parameters()}
    ids |= {id(p) for p in trial.parameters(recurse=False)}  # a class token
    return {name for name, p in trial.named_parameters() if id(p) in ids}


def frozen(model: nn.Module) -> list[str]:
    """The names of the parts that are frozen as a whole: the largest modules, or parameters."""
    names: list[str] = []
    for name, module in model.named_modules():
        parts = [(name, list(module.parameters()))] if name else []
        parts += [(key, [p]) for key, p in module.named_parameters(name, recurse=False)]
        for part, parameters in parts:
            inside = any(part.startswith(f"{whole}.") for whole in names)
            if parameters and not inside and not any(p.requires_grad for p in parameters):
                names.append(part)
    return names
