"""Which models recognise the class of inputs that each of them generates, in several ways?"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

import minivit
from studies.runner.survey import Figures, Survey
from studies.shared import inputs
from vitlab.instruments.filters import dct2
from vitlab.inversion import generate, recognise

MODELS = {"vit": "cifar10_vit_gap", "mixer": "cifar10_mixer", "resnet": "cifar10_resnet"}
STEPS, CROPS_AFTER = 100, 67  # crops move in the last third, as after 200 steps of 300
# With this first sigma 100 steps blur 32 pixels as much, as a fraction of an image, as the source's
# 300 steps from 2.4 down blur 224 pixels: chapter 11 computes it.
BLUR = 0.47
BY_PIXELS: dict[str, Any] = {"method": "source", "jitter_after": CROPS_AFTER}
PAIR = ("vit", "resnet")
# Of each way: seeds, five where verdicts rest on it; the models that generate; and how.
WAYS: dict[str, tuple[int, Sequence[str], dict[str, Any]]] = {
    "score alone": (3, PAIR, {**BY_PIXELS, "blur": 0, "jitter": 0}),
    "blur": (5, list(MODELS), {**BY_PIXELS, "blur": BLUR, "jitter": 0}),
    "blur and crops": (5, list(MODELS), {**BY_PIXELS, "blur": BLUR, "jitter": 4}),
    # Nine positions each, three a side, a whole patch of the ViT (4 x 4) apart, or not.
    "crops by 4": (5, ["vit"], {**BY_PIXELS, "blur": BLUR, "jitter": 8, "jitter_step": 4}),
    "crops by 3": (5, ["vit"], {**BY_PIXELS, "blur": BLUR, "jitter": 6, "jitter_step": 3}),
    "blur from 2.4 alone": (3, PAIR, {**BY_PIXELS, "blur": 2.4, "jitter": 0}),
    "blur from 2.4": (3, ["vit"], {**BY_PIXELS, "blur": 2.4, "jitter": 4}),
    "waves": (3, list(MODELS), {"method": "fourier"}),
    "waves, no views": (3, PAIR, {"method": "fourier", "views": False}),
}


def fast(pictures: Tensor) -> float:
    """Mean fraction of energy above a quarter of a cycle a pixel."""
    energy = dct2(pictures.double().permute(2, 3, 0, 1)).square().sum(3)  # [rows, columns, n]
    energy[0, 0] = 0
    down, across = (torch.arange(n) / (2 * n) for n in energy.shape[:2])
    frequency = (down[:, None] ** 2 + across**2).sqrt()[..., None]  # in cycles a pixel
    shares = energy / energy.sum((0, 1))
    return (shares * (frequency > 0.25)).sum((0, 1)).mean().item()


def scrambled(pictures: Tensor) -> Tensor:
    """The same amplitudes with other phases: textures and colours without shapes."""
    noise = torch.randn(pictures[:, :1].shape, generator=torch.Generator().manual_seed(0))
    turn = torch.fft.rfft2(noise).angle()  # the same for all channels
    turn[..., 0, 0] = 0  # the mean stays
    waves = torch.fft.rfft2(pictures.double()) * torch.exp(1j * turn)
    return torch.fft.irfft2(waves, s=pictures.shape[2:]).round().clamp(0, 255).to(torch.uint8)


def judged(pictures: Tensor, classes: Tensor) -> Figures:
    """What all models recognise in images, and in the same images scrambled."""
    judges = {name: minivit.load(file) for name, file in MODELS.items()}
    whole, mixed = (recognise(x, classes, judges) for x in (pictures, scrambled(pictures)))
    values = {
        "recognised": whole.accuracy,
        "probability": whole.probability.mean(1),
        "scrambled": mixed.accuracy,
    }
    by_judge = {name: dict(zip(judges, row.tolist(), strict=True)) for name, row in values.items()}
    return {**by_judge, "fast": fast(pictures)}


def real() -> Figures:
    part = inputs.pictures("CIFAR10", 1000, "validation")
    return judged(part.images, part.labels)


def generated(maker: str, way: str) -> Figures:
    """What the models recognise in what one of them made, for each seed."""
    model = minivit.load(MODELS[maker])
    seeds, _, how = WAYS[way]
    like: Any = model.preprocess
    std, mean = (torch.tensor(x)[:, None, None] for x in (like.std, like.mean))
    by_seed = []
    for seed in range(seeds):
        result = generate(model, range(10), steps=STEPS, seed=seed, **how)
        pixels = result.images * std + mean
        beyond = ((pixels < 0) | (pixels > 1)).float().mean().item()
        by_seed.append(judged(result.pictures, result.classes) | {"beyond": beyond})
    return {"seeds": by_seed}


ROWS = {f"{maker}, {way}": partial(generated, maker, way) for way in WAYS for maker in WAYS[way][1]}
STUDY = Survey("generated_inputs", {"real pictures": real} | ROWS, range(5), tolerance=0.2)
