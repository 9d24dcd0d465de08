"""The project of chapter 11: a picture whose score is high wherever it is shifted to.

What is expected comes from a reference with its gradients written out, for scores whose slope
changes its sign with the pixel.
"""

import torch
from torch import Tensor

from course.check.attempt import Attempt, normal_draws
from course.check.exercise import exercise

CHAPTER = "11_generated_inputs"
SPEED = 4.0


class Waves(torch.nn.Module):
    """Logits [n, classes]: the sum over pixels of ``w * sin(4 x)``."""

    def __init__(self, w: Tensor):
        super().__init__()
        self.w = torch.nn.Parameter(w)

    def forward(self, images: Tensor) -> Tensor:
        return torch.einsum("nchw,kchw->nk", (SPEED * images).sin(), self.w)


def climbed(
    start: Tensor,
    w: Tensor,
    shifts: list[tuple[int, int]],
    steps: int,
    step_size: float,
    *,
    back: int = -1,
    sign: int = 1,
    clip: str = "always",
    scale: str = "picture",
) -> Tensor:
    """The reference; what is named after the star makes mistakes."""
    x = start.clone()
    for _ in range(steps):
        turned = [torch.roll(w, (back * down, back * across), (2, 3)) for down, across in shifts]
        gradient = SPEED * (SPEED * x).cos() * torch.stack(turned).mean(0)
        axes = {"picture": (1, 2, 3), "batch": (0, 1, 2, 3)}.get(scale)
        if axes:
            gradient = gradient / gradient.square().mean(axes, keepdim=True).sqrt()
        if scale == "sign":
            gradient = gradient.sign()
        x = x + sign * step_size * gradient
        if clip == "always":
            x = x.clamp(0, 1)
    return x.clamp(0, 1) if clip == "last" else x


@exercise(CHAPTER)
def robust_pictures(attempt: Attempt) -> None:
    """start [n, channels, height, width], wanted [n], model, shifts, ... -> as start."""
    n, classes, channels, height, width = 3, 4, 2, 5, 6
    draw = normal_draws(seed=24)
    size = torch.tensor([1.0, 3, 0.5, 2]).view(-1, 1, 1, 1)
    model = Waves(size * draw(classes, channels, height, width))
    start = 0.5 + 0.05 * draw(n, channels, height, width)
    wanted = torch.tensor([2, 0, 3])
    w = model.w.detach()[wanted]
    shape = dict(n=n, channels=channels, height=height, width=width)

    def climb(shifts: list[tuple[int, int]], steps: int, step_size: float) -> Tensor:
        return attempt(start, wanted, model, shifts, steps, step_size, shape=shape)

    still = [(0, 0)]
    result = climb(still, 1, 0.02)
    attempt.expect(not torch.equal(result, start), "The pictures are still the start after a step.")
    once = (start, w, still, 1, 0.02)
    first = (start, model.w.detach()[:n], still, 1, 0.02)
    # The step for probabilities: each logit's slope less the mean slope, weighted by probability.
    p = model(start).softmax(1).detach()
    mean = torch.einsum("nk,kchw->nchw", p, model.w.detach())
    attempt.expect_close(
        result,
        climbed(*once),
        "One step without a shift is wrong. It should lead along the gradient of the wanted logit, "
        "divided by its root mean square over the picture.",
        {
            "The score falls. Go up its gradient.": climbed(*once, sign=-1),
            "The gradient is not divided by its root mean square.": climbed(*once, scale="none"),
            "All pictures share one root mean square. Each should have its own.": (
                climbed(*once, scale="batch")
            ),
            "Every pixel moves as far as every other. Divide the gradient by one number for each "
            "picture, and not by its size pixel by pixel.": climbed(*once, scale="sign"),
            "Picture i climbs for class i. Its class is wanted[i].": climbed(*first),
            "The gradient is that of the probability. Take the logit: it goes on rising where the "
            "softmax is flat.": climbed(start, w - mean, still, 1, 0.02),
        },
    )
    attempt.expect(
        model.w.grad is None,
        "The model's parameters have gradients now. Ask for the gradient of the pictures alone.",
    )
    shifts = [(0, 0), (1, 2), (-2, 1)]
    moved = (start, w, shifts, 1, 0.02)
    several = {
        "The shifts play no part.": climbed(start, w, still, 1, 0.02),
        "Only the last shift counts. Take the mean of the scores over all of them.": (
            climbed(start, w, shifts[-1:], 1, 0.02)
        ),
        "Rows and columns of a shift are exchanged. It is (down, across).": (
            climbed(start, w, [(across, down) for down, across in shifts], 1, 0.02)
        ),
        "The picture is shifted the other way: up instead of down, to the left instead of to the "
        "right.": climbed(*moved, back=1),
    }
    attempt.expect_close(
        climb(shifts, 1, 0.02),
        climbed(*moved),
        "With three shifts the step is wrong. The score is the mean of the scores of the shifted "
        "pictures.",
        several,
    )
    far = (start, w, shifts, 3, 0.4)
    attempt.expect_close(
        climb(shifts, 3, 0.4),
        climbed(*far),
        "After three large steps the pictures are wrong.",
        {
            "The pictures leave the range from 0 to 1. Cut them off after each step.": (
                climbed(*far, clip="never")
            ),
            "The pictures are cut off at the end alone. Cut them off after each step: the next "
            "gradient should be that of a picture that can be seen.": climbed(*far, clip="last"),
        },
    )
