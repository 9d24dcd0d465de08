"""The right values for what was reported of other programs, by numpy and plain torch.

Nothing here, nor in what it imports, knows ``minivit`` or ``vitlab``: a test holds it to that.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.vitlab.tried.by_hand import first, hooked, relevances, rolled_out, softmaxes

Rows = slice | list[int]  # of the tokens: which the head reads, by the model's source


def drawn(model: nn.Module, std: float = 0.15, seed: int = 0) -> Any:
    """The model in evaluation mode, all its weights drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, std, generator=generator)
    return model.eval()


def weights(model: Callable[..., Any], images: Tensor, *more: Any) -> list[Tensor]:
    """Every softmax's result, caught where torch computes it."""
    with torch.no_grad(), softmaxes(len(images)) as seen:
        model(images, *more)
    return seen


def maps(
    model: nn.Module, images: Tensor, classes: Tensor, read: Rows, patches: slice
) -> tuple[Tensor, Tensor]:
    """Rollout's and relevance's map of the patches, after the last block, in the mean of the rows that are read."""
    with torch.enable_grad(), softmaxes(len(images)) as seen:
        output = model(images.clone().requires_grad_())
        getattr(output, "logits", output).gather(1, classes[:, None]).sum().backward()
    seen = [w for w in seen if w.shape[-1] == w.shape[-2]]
    relevance = relevances(seen)[-1] - torch.eye(seen[0].shape[-1])
    rollout = rolled_out([w.detach() for w in seen])[-1]
    rollout, relevance = (matrix[:, read].mean(1)[:, patches] for matrix in (rollout, relevance))
    return rollout / rollout.sum(-1, keepdim=True), relevance


def output_of(model: nn.Module, name: str, images: Tensor) -> Tensor:
    """What a module gives, by torch's own hook."""
    seen: list[Tensor] = []
    with torch.no_grad(), hooked(model, [name], lambda _, x, y: seen.append(first(y))):
        model(images)
    return seen[-1]


def stretched(table: Tensor, old: tuple[int, int], new: tuple[int, int], extra: int) -> Tensor:
    """A table of positions ``[tokens, dim]`` at another grid, bicubic, corners kept."""
    picture = table[extra:].T.reshape(1, -1, *old)
    picture = F.interpolate(picture, new, mode="bicubic", align_corners=True)
    return torch.cat([table[:extra], picture[0].flatten(1).T])


def hsic(x: np.ndarray, y: np.ndarray) -> float:
    """The unbiased estimate, from Gram matrices without their diagonals (Song et al. 2012)."""
    n, ones = len(x), np.ones(len(x))
    k, m = (z @ z.T * (1 - np.eye(n)) for z in (x, y))
    total = (
        np.trace(k @ m)
        + (ones @ k @ ones) * (ones @ m @ ones) / ((n - 1) * (n - 2))
        - 2 * (ones @ k @ m @ ones) / (n - 2)
    )
    return total / (n * (n - 3))


def cka(batches: list[tuple[Tensor, Tensor]]) -> float:
    """Debiased CKA over batches."""
    pairs = [[t.double().flatten(1).numpy() for t in pair] for pair in batches]
    sums = [sum(hsic(pair[i], pair[j]) for pair in pairs) for i, j in ((0, 1), (0, 0), (1, 1))]
    return sums[0] / math.sqrt(sums[1] * sums[2])


def upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Pixels turned as EXIF says: 3 half a turn, 6 a quarter clockwise, 8 a quarter back."""
    return np.rot90(pixels, {1: 0, 3: 2, 6: -1, 8: 1}[orientation])


def on_white(pixels: np.ndarray) -> np.ndarray:
    """RGBA as RGB, before white."""
    alpha = pixels[..., 3:].astype(float) / 255
    return (pixels[..., :3] * alpha + 255 * (1 - alpha)).round().astype(np.uint8)


def eight_bits(levels: np.ndarray) -> np.ndarray:
    return (levels.astype(float) * 255 / 65535).round().astype(np.uint8)


def by_onnx(file: Path, images: Tensor) -> Tensor:
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"images": images.numpy()})[0])
