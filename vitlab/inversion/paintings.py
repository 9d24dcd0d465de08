"""Two ways to change an image so that a class score rises: by its pixels, or by its waves."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from minivit.preprocessing import Preprocess
from minivit.shapes import Images
from vitlab.boundary import checked
from vitlab.inversion.solvers import Numbers


def blurred(images: Images, std: float) -> Images:
    """Images under a 3 x 3 Gaussian of this standard deviation in pixels, mirrored at the edges."""
    side = math.exp(-1 / (2 * std**2)) if std > 0.05 else 0.0
    line = torch.tensor([side, 1, side], dtype=images.dtype, device=images.device) / (1 + 2 * side)
    kernel = torch.outer(line, line).expand(images.shape[1], 1, 3, 3)
    return F.conv2d(F.pad(images, (1, 1, 1, 1), "reflect"), kernel, groups=images.shape[1])


@checked
@dataclass(eq=False)
class Pixels:
    """Gradient descent on ``|C - score|``, pixel by pixel, with blur and jitter, as in the source.

    Canvases begin as noise from N(0.7, 1/20). At each step the model sees a crop of ``shape``,
    central at first, which moves against its gradient and is blurred.
    """

    shape: tuple[int, int, int, int]
    generator: Generator
    like: Float[Tensor, "..."]  # gives dtype and device
    steps: int
    constant: float
    step_size: float | Tensor | None
    blur: float
    jitter: int
    jitter_after: int
    jitter_step: int = 1

    def __post_init__(self) -> None:
        *outer, height, width = self.shape
        size = height + self.jitter, width + self.jitter
        noise = torch.randn(*outer, *size, generator=self.generator)
        self.canvas = (0.7 + noise * (1 / 20)).to(self.like)
        self.blurs = torch.linspace(self.blur, 0, self.steps).tolist()

    def _crop(self, top: int, left: int) -> Tensor:
        return self.canvas[..., top : top + self.shape[2], left : left + self.shape[3]]

    def view(self, step: int) -> Tensor:
        self.place = (self.jitter // 2, self.jitter // 2)
        if step >= self.jitter_after:
            places = self.jitter // self.jitter_step + 1
            down, across = torch.randint(places, (2,), generator=self.generator).tolist()
            self.place = down * self.jitter_step, across * self.jitter_step
        return self._crop(*self.place).clone().requires_grad_()

    def improve(self, view: Tensor, score: Tensor, step: int) -> None:
        (gradient,) = torch.autograd.grad((self.constant - score).abs().sum(), view)
        if self.step_size is None:
            rms = gradient.flatten(1).square().mean(1).sqrt()
            self.step_size = (1 / 20 / rms).view(-1, 1, 1, 1)
        moved = view.detach() - self.step_size * gradient
        self._crop(*self.place).copy_(blurred(moved, self.blurs[step]))

    def finished(self) -> Tensor:
        return self._crop(self.jitter // 2, self.jitter // 2).clone()


def viewed(x: Images, turn: Numbers, zoom: Numbers, down: Numbers, across: Numbers) -> Images:
    """Turns, zooms and shifts the view of each image, continued beyond its edges by mirror images.

    By radians, clockwise on the content; by the view's size relative to the image; in sides.
    """
    cos = zoom * turn.cos()
    sin = zoom * turn.sin()
    ratio = x.shape[-1] / x.shape[-2]
    # From positions in the view to positions in the image, in half widths and half heights.
    theta = torch.stack([cos, sin / ratio, 2 * across, -sin * ratio, cos, 2 * down], -1)
    grid = F.affine_grid(theta.view(-1, 2, 3), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


@checked
class Fourier:
    """Adam on the Fourier coefficients, under a random change of view at each step.

    After Mordvintsev et al. (2018) and Olah et al. (2017). A coefficient's weight falls with its
    frequency ``f`` as ``1/f``, and a sigmoid keeps pixels between black and white.
    """

    SHIFT, TURN, ZOOM = 1 / 8, math.radians(10), 0.1  # at most; shifts in sides of an image
    NOISE = 0.2  # its standard deviation, where black is 0 and white is 1

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        generator: Generator,
        like: Float[Tensor, "..."],
        step_size: float,
        preprocess: Preprocess | None,
        views: bool = True,
    ) -> None:
        self.shape, self.generator, self.views = shape, generator, views
        height, width = shape[2:]
        down = torch.fft.fftfreq(height)
        across = torch.fft.rfftfreq(width)
        radius = (down[:, None] ** 2 + across**2).sqrt().clamp(min=1 / max(height, width))
        self.scale = (height * width) ** 0.5 / 4 / radius.to(like)
        start = 0.01 * torch.randn(*shape[:2], *radius.shape, 2, generator=generator)
        self.coefficients = start.to(like).requires_grad_()  # real and imaginary parts
        self.adam = torch.optim.Adam([self.coefficients], step_size)
        mean, std = ((0.0,), (1.0,)) if preprocess is None else (preprocess.mean, preprocess.std)
        self.mean, self.std = (like.new_tensor(v).view(-1, 1, 1) for v in (mean, std))

    def _images(self) -> Tensor:
        coefficients = torch.view_as_complex(self.coefficients) * self.scale
        x = torch.fft.irfft2(coefficients, s=self.shape[2:])
        return (x.sigmoid() - self.mean) / self.std

    def view(self, step: int) -> Tensor:
        x = self._images()
        if not self.views:
            return x
        u = 2 * torch.rand(4, len(x), generator=self.generator).to(x) - 1  # from -1 to 1
        noise = torch.randn(self.shape, generator=self.generator).to(x) * self.NOISE / self.std
        down, across = self.SHIFT * u[2:]
        return viewed(x, self.TURN * u[0], 1 + self.ZOOM * u[1], down, across) + noise

    def improve(self, view: Tensor, score: Tensor, step: int) -> None:
        self.adam.zero_grad()
        (-score).sum().backward(inputs=[self.coefficients])
        self.adam.step()

    def finished(self) -> Tensor:
        return self._images().detach()
