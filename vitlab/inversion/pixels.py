"""Images of a class, pixel by pixel: gradient descent with blur and jitter."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor


def blurred(
    images: Float[Tensor, "batch channels height width"], std: float
) -> Float[Tensor, "batch channels height width"]:
    """Images under a 3 x 3 Gaussian of this standard deviation in pixels, mirrored at the edges."""
    side = math.exp(-1 / (2 * std**2)) if std > 0.05 else 0.0
    line = torch.tensor([side, 1, side], dtype=images.dtype, device=images.device) / (1 + 2 * side)
    kernel = torch.outer(line, line).expand(images.shape[1], 1, 3, 3)
    return F.conv2d(F.pad(images, (1, 1, 1, 1), "reflect"), kernel, groups=images.shape[1])


class Pixels:
    """Gradient descent on ``|C - score|``, pixel by pixel, with blur and jitter, as in the source.

    Canvases begin as noise from N(0.7, 1/20). At each step the model sees a crop of ``shape``,
    which moves against its gradient and is blurred; the rest of the canvas stays. The crop is
    central at first, and at a random position once ``jitter_after`` steps are done. The other
    options are those of :func:`~vitlab.inversion.generate.generate`; ``like`` gives dtype and
    device.
    """

    MEAN = 0.7
    STD = 1 / 20

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        generator: Generator,
        like: Tensor,
        steps: int,
        constant: float,
        step_size: float | None,
        blur: float,
        jitter: int,
        jitter_after: int,
        jitter_step: int = 1,
    ) -> None:
        *outer, height, width = shape
        noise = torch.randn(*outer, height + jitter, width + jitter, generator=generator)
        self.canvas = (self.MEAN + self.STD * noise).to(like)
        self.size = (height, width)
        self.jitter = jitter
        self.jitter_after = jitter_after
        self.jitter_step = jitter_step
        self.generator = generator
        self.constant = constant
        self.blurs = torch.linspace(blur, 0, steps).tolist()
        self.step_size = None
        if step_size is not None:
            self.step_size = self.canvas.new_full((len(noise),), step_size)

    def _crop(self, top: int, left: int) -> Tensor:
        return self.canvas[..., top : top + self.size[0], left : left + self.size[1]]

    def view(self, step: int) -> Tensor:
        self.place = (self.jitter // 2, self.jitter // 2)
        if step >= self.jitter_after:
            places = self.jitter // self.jitter_step + 1
            down, across = torch.randint(places, (2,), generator=self.generator).tolist()
            self.place = down * self.jitter_step, across * self.jitter_step
        return self._crop(*self.place).clone().requires_grad_()

    def improve(self, seen: Tensor, score: Tensor, step: int) -> None:
        (gradient,) = torch.autograd.grad((self.constant - score).abs().sum(), seen)
        if self.step_size is None:
            self.step_size = self.STD / gradient.flatten(1).square().mean(1).sqrt()
        moved = seen.detach() - self.step_size.view(-1, 1, 1, 1) * gradient
        self._crop(*self.place).copy_(blurred(moved, self.blurs[step]))

    def finished(self) -> Tensor:
        return self._crop(self.jitter // 2, self.jitter // 2).clone()
