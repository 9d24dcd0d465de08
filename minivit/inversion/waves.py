"""Pictures of a class wave by wave: Fourier coefficients, each time seen from elsewhere."""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from minivit.hub.preprocessing import Preprocess


def viewed(x: Tensor, turn: Tensor, zoom: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """Looks at images from elsewhere, their mirror images around them.

    Args:
        x: ``[n, channels, height, width]``.
        turn: Angles, clockwise on the picture's content, in radians: ``[n]``, as all that follows.
        zoom: How much more of the picture is in view, along each side: 1 is all of it.
        down: How far down the view moves, in heights.
        across: How far to the right, in widths.
    """
    cos, sin, ratio = zoom * turn.cos(), zoom * turn.sin(), x.shape[-1] / x.shape[-2]
    # From places in the view to places in the picture; units are half widths and half heights.
    theta = torch.stack([cos, sin / ratio, 2 * across, -sin * ratio, cos, 2 * down], -1)
    grid = F.affine_grid(theta.view(-1, 2, 3), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


class Waves:
    """Adam on the Fourier coefficients, under a random change of view at each step.

    After Mordvintsev et al. (2018) and Olah et al. (2017). A coefficient's weight in the picture
    falls with its frequency ``f`` as ``1/f``, as amplitudes do in natural pictures, so that a step
    changes what is slow more than what is fast. A sigmoid keeps pixels between black and white.
    Shifts, turns, zooms and noise before the model sees the picture ask for what it still
    recognises when the picture changes a little.

    Args:
        shape: ``[n, channels, height, width]`` of what the model sees.
        generator: For the start and the views.
        like: What dtype and device to use.
        step_size: Adam's.
        preprocess: How a picture becomes an input: its mean and deviation. Default: as it is.
        views: Whether the view changes. Default: true.
    """

    SHIFT, TURN, ZOOM = 1 / 8, math.radians(10), 0.1  # at most; the shift in sides of a picture
    NOISE = 0.2  # its deviation, where black is 0 and white is 1

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        generator: Generator,
        like: Tensor,
        step_size: float,
        preprocess: Preprocess | None,
        views: bool = True,
    ) -> None:
        self.shape, self.generator, self.views = shape, generator, views
        height, width = shape[2:]
        down, across = torch.fft.fftfreq(height), torch.fft.rfftfreq(width)
        radius = (down[:, None] ** 2 + across**2).sqrt().clamp(min=1 / max(height, width))
        self.scale = (height * width) ** 0.5 / 4 / radius.to(like)
        start = 0.01 * torch.randn(*shape[:2], *radius.shape, 2, generator=generator)
        self.waves = start.to(like).requires_grad_()
        self.adam = torch.optim.Adam([self.waves], step_size)
        mean, std = ((0.0,), (1.0,)) if preprocess is None else (preprocess.mean, preprocess.std)
        self.mean, self.std = (like.new_tensor(v).view(-1, 1, 1) for v in (mean, std))

    def _pictures(self) -> Tensor:
        coefficients = torch.view_as_complex(self.waves) * self.scale
        x = torch.fft.irfft2(coefficients, s=self.shape[2:])
        return (x.sigmoid() - self.mean) / self.std

    def view(self, step: int) -> Tensor:
        x = self._pictures()
        if not self.views:
            return x
        u = 2 * torch.rand(4, len(x), generator=self.generator).to(x) - 1  # from -1 to 1
        noise = torch.randn(self.shape, generator=self.generator).to(x) * self.NOISE / self.std
        turn, zoom, (down, across) = self.TURN * u[0], 1 + self.ZOOM * u[1], self.SHIFT * u[2:]
        return viewed(x, turn, zoom, down, across) + noise

    def improve(self, seen: Tensor, score: Tensor, step: int) -> None:
        self.adam.zero_grad()
        (-score).sum().backward(inputs=[self.waves])
        self.adam.step()

    def finished(self) -> Tensor:
        return self._pictures().detach()
