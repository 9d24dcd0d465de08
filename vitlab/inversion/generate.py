"""Images made from a class score, what a model would draw, and what other models see in them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn

from minivit.patches import pair
from minivit.preprocessing import Preprocess
from minivit.shapes import Images
from vitlab.calls import expect, logits, refuse_training
from vitlab.inversion.paintings import Fourier, Pixels
from vitlab.krylov.products import finite


@dataclass(frozen=True, eq=False)
class Generated:
    """What :func:`generate` made."""

    images: Images  # in the model's input space
    pictures: UInt8[Tensor, "batch channels height width"]  # the same to look at, 0 to 255
    classes: Int[Tensor, " batch"]  # the class that each was made for
    scores: Float[Tensor, "batch steps"]  # its logit for what the model saw at each step
    logits: Float[Tensor, "batch classes"]  # of the images


@torch.inference_mode(False)  # in which nothing has a gradient
def generate(
    model: nn.Module,
    class_index: int | Iterable[int],
    *,
    method: Literal["fourier", "source"] = "fourier",
    steps: int = 300,
    step_size: float | None = None,
    size: tuple[int, int, int] | None = None,
    seed: int = 0,
    constant: float = 1000.0,
    blur: float = 2.4,
    jitter: int | None = None,
    jitter_after: int = 200,
    jitter_step: int = 1,
    views: bool = True,
) -> Generated:
    """Makes inputs to which a model gives a high score for a class, or for each of several::

        generate(model, range(10)).pictures  # [10, channels, height, width]

    By :class:`~vitlab.inversion.paintings.Fourier`, or :class:`~vitlab.inversion.paintings.Pixels`
    for ``"source"``; options from ``constant`` to ``jitter_step`` are for the latter alone, and
    ``views``, whether the model sees changing views of the image, for the former.

    Args:
        step_size: Of Adam, by default 0.1; of the source, such that the first step is 1/20.
        size: Channels, height and width of an input. Default: from the model's ``config``.
        blur: Standard deviation of the 3 x 3 Gaussian in pixels, falling linearly to 0.
        jitter: Pixels by which the canvas is larger than a crop, by default an eighth of the
            shorter side. Crops move after ``jitter_after`` steps, by multiples of ``jitter_step``.
    """
    refuse_training(model)
    wanted = torch.tensor(list(class_index) if isinstance(class_index, Iterable) else [class_index])
    if size is None:
        config: Any = getattr(model, "config", None)
        size = getattr(config, "channels", 0), *pair(getattr(config, "image_size", 0))
    fits = len(size) == 3 and min(size) >= 1
    expect(fits, "size=(channels, height, width), as the config has none", size)
    like = next(model.parameters()).detach()
    preprocess = getattr(model, "preprocess", None)
    preprocess = preprocess if isinstance(preprocess, Preprocess) else None
    shape = (len(wanted), *size)
    generator = torch.Generator().manual_seed(seed)
    painting: Pixels | Fourier
    if method == "source":
        jitter = min(size[1:]) // 8 if jitter is None else jitter
        central = jitter >= 0 and (jitter_step == 1 or jitter % (2 * jitter_step) == 0)
        expect(central, "a jitter that twice jitter_step divides", f"{jitter} and {jitter_step}")
        crops = jitter, jitter_after, jitter_step
        painting = Pixels(shape, generator, like, steps, constant, step_size, blur, *crops)
    else:
        painting = Fourier(shape, generator, like, step_size or 0.1, preprocess, views)
    scores, answers = _paint(model, painting, wanted.to(like.device), steps)
    images = finite(painting.finished(), "an image, from a smaller step_size or constant,")
    shown = images
    if preprocess is not None:
        mean, std = (like.new_tensor(v).view(-1, 1, 1) for v in (preprocess.mean, preprocess.std))
        shown = images * std + mean
    pictures = (shown.clamp(0, 1) * 255).round().to(torch.uint8).cpu()
    return Generated(images, pictures, wanted, scores.cpu(), answers.cpu())


def _paint(
    model: nn.Module, painting: Pixels | Fourier, wanted: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """Takes all steps: the scores on the way, ``[batch, steps]``, and the logits at the end."""
    scores = []
    for step in range(steps):
        view = painting.view(step)
        answers = logits(model, view)
        known = wanted.min() >= 0 and wanted.max() < answers.shape[1]
        expect(known, f"classes below {answers.shape[1]}", wanted.tolist())
        score = answers.gather(1, wanted[:, None])[:, 0]
        if step == 0:
            (slope,) = torch.autograd.grad(score.sum(), view, retain_graph=True)
            if not slope.flatten(1).any(1).all():
                raise ValueError("a score does not depend on the image: is the model untrained?")
        painting.improve(view, score, step)
        scores.append(score.detach())
    with torch.no_grad():
        return torch.stack(scores, 1), logits(model, painting.finished())


@dataclass(frozen=True, eq=False)
class Recognition:
    """What independent models, the judges, see in images."""

    judges: tuple[str, ...]
    seen: Int[Tensor, "judges batch"]  # the likeliest class
    probability: Float[Tensor, "judges batch"]  # of the class that the image was made for, float64
    recognised: Bool[Tensor, "judges batch"]  # whether that is the likeliest class

    @property
    def accuracy(self) -> Float[Tensor, " judges"]:
        """The fraction of the images that each judge recognises."""
        return self.recognised.double().mean(1)


@torch.no_grad()
def recognise(
    pictures: UInt8[Tensor, "batch channels height width"],
    classes: Int[Tensor, " batch"] | int,
    judges: Mapping[str, nn.Module],
) -> Recognition:
    """What independent models, the judges, see in images, made for a class each, or for one.

    Judges have the classes of the model that made them, and a ``preprocess``.
    """
    wanted = torch.as_tensor(classes).cpu().expand(len(pictures))
    probabilities = []
    for name, judge in judges.items():
        prepare: Any = getattr(judge, "preprocess", None)
        expect(prepare is not None, f"{name}.preprocess, which turns uint8 images into input", None)
        refuse_training(judge, name)
        answer = logits(judge, prepare(pictures)).double().cpu()
        known = wanted.min() >= 0 and wanted.max() < answer.shape[1]
        expect(known, f"one of the {answer.shape[1]} classes of {name}", wanted.tolist())
        probabilities.append(answer.softmax(1))
    p = torch.stack(probabilities)  # [judges, n, all classes]
    seen = p.argmax(2)
    return Recognition(tuple(judges), seen, p[:, range(len(wanted)), wanted], seen == wanted)
