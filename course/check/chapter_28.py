"""Chapter 28: points on the way from noise, time, modulation, steps, guidance, copies."""

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw
from course.check.chapter_04 import normed
from course.check.exercise import exercise


@exercise("points and velocities, batch, channels, height, width", seed=0)
def flow_example(attempt: Attempt, normal: Draw) -> None:
    """noise and images [batch, c, h, w], t [batch] -> [2, batch, c, h, w]."""
    noise, images = normal(2, 3, 4, 5), normal(2, 3, 4, 5)
    t = torch.tensor([0.25, 0.625])
    at = t[:, None, None, None]
    points, turned = (1 - at) * noise + at * images, at * noise + (1 - at) * images
    velocities = images - noise
    outcomes = {
        torch.stack([points, velocities]): "For two images, a point or a velocity is wrong.",
        torch.stack([turned, -velocities]): "Time runs the other way: at t = 0 there is noise.",
        torch.stack([turned, velocities]): "The points are turned round: at t = 0 there is noise.",
        torch.stack([points, -velocities]): "The velocity points from the image to the noise.",
        torch.stack([points, images]): "The second is the image. The velocity leads to it.",
        torch.stack([points, images - points]): "The velocity leads from the noise, not the point.",
        torch.stack([noise + at * images, velocities]): "The noise does not fade: it has 1 - t.",
        torch.stack([velocities, points]): "First the points, then the velocities.",
    }
    attempt.expect_close(attempt(noise, images, t), outcomes)


@exercise("batch, dim")
def time_features(attempt: Attempt) -> None:
    """t [batch] and an even dim -> [batch, dim]."""
    t, dim = torch.tensor([0.0, 0.3, 0.71]), 8

    def features(rates: Tensor, order: str = "cs", side: bool = True) -> Tensor:
        angles = t[:, None] * rates
        parts = [{"c": angles.cos(), "s": angles.sin()}[one] for one in order]
        return torch.cat(parts, 1) if side else torch.stack(parts, 2).flatten(1)

    equal = torch.tensor([1.0, 10.0, 100.0, 1000.0])  # in equal ratios
    outcomes = {
        features(equal): "For three times and dim 8 a feature is wrong.",
        features(equal, "sc"): "First all cosines, then all sines.",
        features(equal, side=False): "All cosines, then all sines, not in turn.",
        features(torch.linspace(1, 1000, 4)): "The rates rise in equal steps, not equal ratios.",
        features(1 / equal): "The rates fall from 1. They should rise from 1 to 1000.",
        features(equal.flip(0)): "The first rate is 1, the last 1000.",
        features(1000 ** (torch.arange(4) / 4)): "The last rate should be 1000 itself.",
        features(2 * torch.pi * equal): "The angle is t times the rate, without 2 pi.",
    }
    attempt.expect_close(attempt(t, dim), outcomes)
    rates = torch.tensor([1.0, 1000**0.5, 1000.0])
    message = "For dim 6 the rates should be 1, the root of 1000, and 1000."
    attempt.expect_close(attempt(t, 6), {features(rates): message})


@exercise("batch, tokens, dim", seed=1)
def modulated(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim]; shift, scale and gate [batch, dim]; a function of tokens -> as x."""
    x, mix = normal(2, 3, 4), normal(3, 3)
    shift, scale, gate = (one[:, None] for one in (normal(2, 4), normal(2, 4), normal(2, 4)))

    def branch(y: Tensor) -> Tensor:  # is not linear, and mixes tokens
        return torch.tanh(mix @ y) + y.square()

    norm = normed(x, eps=1e-6)
    y = norm * (1 + scale) + shift
    given = [one[:, 0] for one in (shift, scale, gate)]
    outcomes = {
        x: "With a gate of zeros the tokens should come back unchanged.",
        0 * x: "The gate belongs to the branch alone: the tokens are lost where it is zero.",
    }
    attempt.expect_close(attempt(x, *given[:2], 0 * given[2], branch), outcomes)
    outcomes = {
        x + gate * branch(y): "With shift, scale and gate the result is wrong.",
        x + gate * branch(norm * scale + shift): "Scale by 1 + scale: zeros change nothing.",
        x + gate * branch((norm + shift) * (1 + scale)): "Scale first, then shift.",
        x + branch(y): "The gate is not used.",
        x + (1 + gate) * branch(y): "The gate is no 1 + gate: zeros should close the branch.",
        x + branch(gate * y): "The gate comes after the branch.",
        x + gate * branch(x * (1 + scale) + shift): "The tokens are not normalised.",
        norm + gate * branch(y): "The sum keeps the tokens as they were, not normalised.",
        x + gate * branch(norm * (1 + shift) + scale): "Shift and scale are exchanged.",
    }
    attempt.expect_close(attempt(x, *given, branch), outcomes)


def velocity(x: Tensor, t: float) -> Tensor:
    """One that depends on place and time."""
    return x * t + torch.tensor([0.4, -1.3, 2.1]) * t**2 + 1


@exercise("batch, numbers", seed=2)
def euler(attempt: Attempt, normal: Draw) -> None:
    """A function of x and t, x [batch, ...], steps -> as x, at t = 1."""
    x, quarters = normal(2, 3), [0.0, 0.25, 0.5, 0.75]
    attempt.applied = lambda function, x, steps: function(velocity, x, steps)

    def way(times: list[float], size: float = 0.25) -> Tensor:
        y = x
        for t in times:
            y = y + size * velocity(y, t)
        return y

    outcomes = {
        way(quarters): "After four steps the result is wrong.",
        way([0.25, 0.5, 0.75, 1.0]): "A step takes the velocity at its beginning: first at t = 0.",
        way(quarters, 1): "A step is 1 / steps long.",
        way([0.0, 1 / 3, 2 / 3, 1.0]): "With four steps t is 0, 1/4, 1/2, 3/4.",
        way([0.0, 1.0, 2.0, 3.0]): "t runs from 0 to 1, not over the numbers of the steps.",
        way([0.0] * 4): "t stays at 0.",
        way(quarters[:3]): "One step is missing.",
        way(quarters, -0.25): "The steps go backwards.",
    }
    attempt.expect_close(attempt(x, 4), outcomes)
    attempt.expect_close(attempt(x, 1), {x + 1: "One step should add the velocity at t = 0."})


@exercise("batch, numbers", seed=6)
def heun(attempt: Attempt, normal: Draw) -> None:
    """A function of x and t, x [batch, ...], steps -> as x, at t = 1."""
    x = normal(2, 3)
    attempt.applied = lambda function, x, steps: function(velocity, x, steps)

    def way(first: float = 0.5, back: bool = True, ahead: float = 1.0, late: float = 1.0) -> Tensor:
        y = x
        for t in (0.0, 1 / 3, 2 / 3):
            there = y + ahead / 3 * velocity(y, t)
            mean = first * velocity(y, t) + (1 - first) * velocity(there, t + late / 3)
            y = (y if back else there) + mean / 3
        return y

    outcomes = {
        way(): "After three steps the result is wrong.",
        way(first=1.0): "This is Euler's step: the second velocity is not used.",
        way(first=0.0): "The first velocity is not used. Take the mean of both.",
        way(back=False): "After the trial step, go back: the step starts where it began.",
        way(late=0.0): "Ask for the second velocity at the time where the trial step ends.",
        way(ahead=0.0): "Ask for the second velocity at the place where the trial step ends.",
        way(first=0.0, ahead=0.5, late=0.5): "This looks half a step ahead. Look a whole one "
        "ahead.",
    }
    attempt.expect_close(attempt(x, 3), outcomes)


@exercise("batch, numbers", seed=3)
def guided(attempt: Attempt, normal: Draw) -> None:
    """Velocities with and without the label, as each other; a scale -> as these."""
    told, free, scale = normal(2, 3), normal(2, 3), 2.5
    outcomes = {
        free + scale * (told - free): "At scale 2.5 the velocity is wrong.",
        told + scale * (told - free): "This is Ho and Salimans's w, which is scale - 1.",
        told + scale * (free - told): "This leads away from the label.",
        free + scale * told: "Take the difference: it says what the label does.",
        scale * (told - free): "The velocity without the label is missing.",
        scale * told: "Velocity without the label is not used.",
    }
    attempt.expect_close(attempt(told, free, scale), outcomes)
    attempt.expect_close(attempt(told, free, 0.0), {free: "At scale 0 no label should be left."})


@exercise("drawings", seed=4)
def nearest(attempt: Attempt, normal: Draw) -> None:
    """Drawings [n, c, h, w] and images [m, c, h, w] -> [n]."""
    drawings, images = normal(4, 2, 3, 2), normal(6, 2, 3, 2)
    squares = torch.stack([(drawings - one).square().sum((1, 2, 3)) for one in images], 1)
    outcomes = {
        squares.amin(1).sqrt(): "For four drawings and six images a distance is wrong.",
        squares.amin(1): "This is the squared distance.",
        squares.amax(1).sqrt(): "This is the distance to the farthest image.",
        squares.sqrt().mean(1): "This is the mean distance to all images.",
        (squares.amin(1) / 12).sqrt(): "Sum the squares over pixels, with no mean.",
    }
    attempt.expect_close(attempt(drawings, images), outcomes)


@exercise("batch, numbers", seed=5)
def exact_velocity(attempt: Attempt, normal: Draw) -> None:
    """Points [batch, d], t below 1, training images [n, d] -> [batch, d]."""
    points, images, t = normal(3, 4), normal(5, 4), 0.35
    squares = torch.stack([(points - t * one).square().sum(1) for one in images], 1)

    def mean(scores: Tensor, past: float = 1 - t) -> Tensor:
        return (torch.exp(scores) / torch.exp(scores).sum(1, keepdim=True) @ images - points) / past

    wide = 2 * (1 - t) ** 2
    outcomes = {
        mean(-squares / wide): "For three points and five images at t = 0.35 it is wrong.",
        mean(-squares / wide, 1.0): "Divide by the time that is left, 1 - t.",
        mean(-squares / wide, t): "Divide by the time that is left, 1 - t, not by t.",
        mean(-squares / (1 - t) ** 2): "A normal density has 2 in its exponent.",
        mean(-squares / 2): "The noise in a point has the deviation 1 - t.",
        mean(-squares / (2 * (1 - t))): "The deviation 1 - t enters squared.",
        mean(squares / wide): "Near images should weigh more: the exponent's sign is wrong.",
        mean(-torch.cdist(points, images).square() / wide): "Compare points with t times images.",
    }
    attempt.expect_close(attempt(points, t, images), outcomes)
