"""Chapter 11: single steps of generating an input, and an image robust to shifts."""

from functools import partial
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, Draw, Outcomes, normal_draws
from course.check.exercise import exercise


@exercise("steps")
def scores_on_the_way(attempt: Attempt) -> None:
    """slope [pixels], start [pixels], constant, step_size, steps -> the score before each step."""
    draw, steps = normal_draws(seed=21), 9
    slope, start = draw(7), draw(7)
    first = (slope * start).sum()
    rise = 0.1 * slope.square().sum()  # of a step of 0.1
    every = torch.arange(steps)

    def check(constant: float, otherwise: str, mistakes: Outcomes) -> None:
        expected = [first]
        for _ in range(steps - 1):
            expected.append(expected[-1] + rise * torch.sign(constant - expected[-1]))
        outcomes = {torch.stack(expected): otherwise} | mistakes
        attempt.expect_close(attempt(slope, start, constant, 0.1, steps), outcomes)

    rising = first + rise * every
    squared = "The steps grow with the distance, as for (C - o)^2. For |C - o| they do not."
    far = (
        "As long as the constant is far away, the score should rise by the same amount at each "
        "step: the step size times the squared length of the slope."
    )
    mistakes = {
        first - rise * every: "The score falls. Descend on |C - o|: subtract the gradient.",
        rising + rise: "These are scores after each step. The first should be the start's.",
        first + rise / slope.norm() * every: "The score rises by the step size times the length of "
        "the slope. A step moves the image by the slope, and the score by the slope times that.",
        1000.0 - rise * every: "The distance |C - o| comes back. Return the score o.",
        first + 1000 * (1 - (1 - rise) ** every): squared,
        first + 1000 * (1 - (1 - 2 * rise) ** every): squared,
    }
    check(first.item() + 1000.0, far, mistakes)
    near = first.item() + 3.5 * rise.item()
    mistakes = {
        rising: "The score keeps rising beyond C. There the slope of |C - o| changes sign.",
        rising.clamp(max=near): "The score stops at C. A step of fixed length leads beyond it.",
    }
    check(near, "Once the score has passed C, the next step should lead back, and so on.", mistakes)
    mistakes = {rising: "From above C the score rises. Descend on the absolute value."}
    message = "A score that begins above C should come down to it, and then swing about it."
    check(first.item() - 2.5 * rise.item(), message, mistakes)


@exercise("channels, height, width", seed=22)
def expected_change(attempt: Attempt, normal: Draw) -> None:
    """update [channels, height, width], jitter -> [channels, height + jitter, width + jitter]."""
    channels, height, width, jitter = 2, 5, 6, 3
    update = normal(channels, height, width)

    def put_at(*positions: tuple[int, ...]) -> Tensor:
        """The update at these positions of the crop, added up."""
        margins = ((left, jitter - left, top, jitter - top) for top, left in positions)
        return torch.stack([F.pad(update, margin) for margin in margins]).sum(0)

    message = "Without jitter there is one position, and the change should be the update itself."
    attempt.expect_close(attempt(update, 0), {update: message})
    n = jitter + 1
    total = put_at(*product(range(n), repeat=2))
    middle, corner = put_at((1, 1)), put_at((0, 0))
    covered = F.conv_transpose2d(torch.ones(1, 1, height, width), torch.ones(1, 1, n, n))[0]
    outcomes = {
        total / n**2: "The change should be the mean, over all positions of the crop, of the "
        "update put there.",
        total: "This is the sum over all positions. An expectation is their mean.",
        total / n: "The sum is divided by the positions along one side. They vary along both.",
        total / jitter**2: "The sum is divided by jitter squared. A side has jitter + 1 positions.",
        put_at(*product(range(jitter), repeat=2)) / jitter**2: "The last row and column of "
        "positions are left out. There are jitter + 1 of each.",
        put_at(*product(range(1, n), repeat=2)) / jitter**2: "The first row and column of "
        "positions are left out. There are jitter + 1 of each.",
        total / covered: "Divide by the number of positions, not by how many covered a pixel.",
        middle: "The crop stays in the middle. It should be at every position equally often.",
        corner: "The crop stays in the corner. It should be at every position equally often.",
    }
    attempt.expect_close(attempt(update, jitter), outcomes)


@exercise("batch, channels, height, width", seed=23)
def step_in_pixels(attempt: Attempt, normal: Draw) -> None:
    """gradient [batch, channels, h, w], weight [h, w], bases [h, h], [w, w] -> as gradient."""
    batch, channels, h, w = 2, 3, 4, 5
    gradient, weight = normal(batch, channels, h, w), normal(h, w).abs() + 0.5
    rows, columns = (torch.linalg.qr(normal(n, n)).Q for n in (h, w))

    def moved(weight: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        coefficients = torch.einsum("uh,vw,bchw->bcuv", rows, columns, gradient)
        return torch.einsum("uh,vw,bcuv->bchw", rows, columns, weight * coefficients)

    outcomes = {
        gradient: "With all weights 1 the two bases are rotations, and a step in the coefficients "
        "should be the step in the pixels.",
        torch.einsum("uh,vw,bchw->bcuv", rows, columns, gradient): "These are coefficients. "
        "Transform them back into a change of the image.",
    }
    attempt.expect_close(attempt(gradient, torch.ones(h, w), rows, columns), outcomes)
    outcomes = {
        moved(weight**2, rows, columns): "With unequal weights, the change of the image is wrong.",
        moved(weight, rows, columns): "The weight counts once. It stands between image and "
        "coefficients on the way to the gradient, and again on the way back.",
        gradient: "Weights play no part.",
        moved(weight**-2, rows, columns): "The weights divide.",
        moved(weight**2, rows.T, columns.T): "Rows and columns of the bases are exchanged. A basis "
        "vector is a row of its matrix.",
        weight**2 * gradient: "Pixels are weighted. The weights belong to coefficients.",
    }
    attempt.expect_close(attempt(gradient, weight, rows, columns), outcomes)


class Sines(torch.nn.Module):
    """Logits [n, classes]: the sum over pixels of ``w * sin(4 x)``."""

    def __init__(self, w: Tensor):
        super().__init__()
        self.w = torch.nn.Parameter(w)

    def forward(self, images: Tensor) -> Tensor:
        return torch.einsum("nchw,kchw->nk", (4 * images).sin(), self.w)


@exercise("n, channels, height, width", seed=24)
def robust_images(attempt: Attempt, normal: Draw) -> None:
    """start [n, channels, height, width], wanted [n], model, shifts, ... -> as start."""
    n, classes, channels, height, width = 3, 4, 2, 5, 6
    size = torch.tensor([1.0, 3, 0.5, 2]).view(-1, 1, 1, 1)
    model = Sines(size * normal(classes, channels, height, width))
    start = 0.5 + 0.05 * normal(n, channels, height, width)
    wanted = torch.tensor([2, 0, 3])
    w = model.w.detach()[wanted]

    def climbed(
        shifts=((0, 0),), steps=1, size=0.02, w=w, back=-1, sign=1, clip="always", scale="picture"
    ) -> Tensor:
        """The reference; arguments from w on make mistakes."""
        x = start
        for _ in range(steps):
            turned = [torch.roll(w, (back * down, back * right), (2, 3)) for down, right in shifts]
            gradient = 4 * (4 * x).cos() * torch.stack(turned).mean(0)
            axes = {"picture": (1, 2, 3), "batch": (0, 1, 2, 3)}.get(scale)
            if axes:
                gradient = gradient / gradient.square().mean(axes, keepdim=True).sqrt()
            if scale == "sign":
                gradient = gradient.sign()
            x = x + sign * size * gradient
            x = x.clamp(0, 1) if clip == "always" else x
        return x.clamp(0, 1) if clip == "last" else x

    result = attempt(start, wanted, model, [(0, 0)], 1, 0.02)
    attempt.expect(not torch.equal(result, start), "The images are still the start after a step.")
    # The step for probabilities: each logit's slope less the mean slope, weighted by probability.
    p = model(start).softmax(1).detach()
    mean = torch.einsum("nk,kchw->nchw", p, model.w.detach())
    outcomes = {
        climbed(): "One step without a shift is wrong. It should lead along the gradient of the "
        "wanted logit, divided by its root mean square over the image.",
        climbed(sign=-1): "The score falls. Go up its gradient.",
        climbed(scale="none"): "The gradient is not divided by its root mean square.",
        climbed(size=0.02 / w[0].numel() ** 0.5): "Not the length: the root mean square.",
        climbed(scale="batch"): "All images share one root mean square. Each has its own.",
        climbed(scale="sign"): "Every pixel moves as far as every other. Divide the gradient by "
        "one number for each image, and not by its size pixel by pixel.",
        climbed(w=model.w.detach()[:n]): "Image i climbs for class i. Its class is wanted[i].",
        climbed(w=w - mean): "The gradient is that of the probability. Take the logit: it keeps "
        "rising where the softmax is flat.",
    }
    attempt.expect_close(result, outcomes)
    message = "The model's parameters have gradients now. Ask only for the gradient of the images."
    attempt.expect(model.w.grad is None, message)
    shifts = [(0, 0), (1, 2), (-2, 1)]
    outcomes = {
        climbed(shifts): "With three shifts the step is wrong. The score is the mean of the scores "
        "of the shifted images.",
        climbed(): "The shifts play no part.",
        climbed(shifts[-1:]): "Only the last shift counts. Take the mean of the scores over all of "
        "them.",
        climbed([shift[::-1] for shift in shifts]): "Rows and columns of a shift are exchanged. It "
        "is (down, across).",
        climbed(shifts, back=1): "The image is shifted the other way: up instead of down, to the "
        "left instead of to the right.",
    }
    attempt.expect_close(attempt(start, wanted, model, shifts, 1, 0.02), outcomes)
    far = partial(climbed, shifts, 3, 0.4)
    outcomes = {
        far(): "After three large steps the images are wrong.",
        far(clip="never"): "The images leave [0, 1]. Cut them off after each step.",
        far(clip="last"): "The images are cut off only at the end. Cut them off after each step: "
        "the next gradient should be that of an image that can be seen.",
    }
    attempt.expect_close(attempt(start, wanted, model, shifts, 3, 0.4), outcomes)
