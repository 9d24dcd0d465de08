"""An image near the one that has given tokens: a guess learned from pictures, then a climb."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from minivit.mixer import Mixer
from minivit.patches import patchify, unpatchify
from minivit.shapes import Images, Tokens
from minivit.vit import ViT
from vitlab.boundary import checked
from vitlab.calls import activation, expect, refuse_training
from vitlab.inversion.optimise import in_dtype
from vitlab.krylov.batches import Operator
from vitlab.krylov.products import linearise

ROUNDS = 2  # of regression: the second one sees where the first one's tokens are wrong
ROWS = 8  # patches of each picture that a round learns from
RIDGE = 3e-3  # added to the variance of the standardised features
FLOOR = 1e-3  # of the mean variance of the tokens, below which a direction is not enlarged
OWN = 0.1  # of the error's variance is taken to be each pixel's own
DAMPING = 0.3  # of the misfit, the noise that a step allows for
PRODUCTS = 60  # with the Jacobian in a step
SHORTEST = 0.02  # of a step, below which the climb ends
BATCH = 50


@checked
class Climb:
    """Learns from pictures how a model's tokens look, and finds images near those of given tokens.

    Two rounds of ridge regression (Hoerl & Kennard 1970) read a patch off its token and the eight
    around it. From there Gauss-Newton steps in the pixels bring the tokens nearer, in float32:
    tokens are whitened, so that faint directions count, and steps are measured by the regression's
    error on the pictures, so that likely ones are long. ``pictures`` are in the model's input
    space, thousands if possible; those that are looked for must not be among them.
    """

    def __init__(self, model: ViT | Mixer, at: str, pictures: Images) -> None:
        refuse_training(model)
        expect(len(pictures) >= 2 * ROWS, f"{2 * ROWS} pictures or more", len(pictures))
        self.model = in_dtype(model, torch.float32)
        self.config, self.function = model.config, activation(self.model, at)
        self.places = math.prod(self.config.grid)
        self.maps: list[tuple[Tensor, Tensor]] = []
        pictures = pictures.float()
        tokens = self._tokens(pictures)
        deviation = (tokens - tokens.mean(0)).flatten(0, 1).double()
        values, vectors = torch.linalg.eigh(deviation.mT @ deviation / len(deviation))
        values = values.clamp(min=0)
        self.whiten = (vectors / (values + FLOOR * values.mean()).sqrt()).float()
        generator = torch.Generator().manual_seed(0)
        order = torch.rand(len(pictures), self.places, generator=generator).argsort(1)[:, :ROWS]
        guess = None
        for _ in range(ROUNDS):
            rows, wanted = [], []
            for batch in torch.arange(len(pictures)).split(BATCH):
                before = None if guess is None else guess[batch]
                missing = pictures[batch] if before is None else pictures[batch] - before
                chosen = order[batch, :, None]
                rows.append(self._features(tokens[batch], before).take_along_dim(chosen, 1))
                patches = patchify(missing, self.config.patch_size)
                wanted.append(patches.take_along_dim(chosen, 1))
            self.maps.append(_ridge(torch.cat(rows).flatten(0, 1), torch.cat(wanted).flatten(0, 1)))
            guess = torch.cat([self.guess(batch) for batch in tokens.split(BATCH)])
        assert guess is not None  # for mypy
        error = (guess - pictures).flatten(1).double()
        covariance = (1 - OWN) * error.mT @ error / len(error)
        covariance.diagonal().add_(OWN * error.square().mean(0))
        self.scale = torch.linalg.cholesky(covariance).float()  # L L^T is the error's covariance

    def _tokens(self, images: Images) -> Tokens:
        with torch.no_grad():
            return torch.cat([self.function(batch) for batch in images.split(BATCH)])

    def _features(self, tokens: Tokens, guess: Images | None) -> Tensor:
        """What a patch is read off: [batch, places, features]."""
        own = tokens[:, -self.places :]
        if guess is None:
            return self._around(own)
        missing = own - self._tokens(guess)[:, -self.places :]
        patches = patchify(guess, self.config.patch_size)
        return torch.cat([self._around(missing), self._around(patches), own], 2)

    def _around(self, tokens: Tokens) -> Tensor:
        """Each token with the eight around it, at the edge with itself again."""
        rows, columns = self.config.grid
        square = rearrange(tokens, "b (r c) d -> b d r c", r=rows)
        wider = F.pad(square, (1, 1, 1, 1), mode="replicate")
        return F.unfold(wider, 3).mT  # [batch, places, 9 dim]

    @torch.no_grad()
    def guess(self, tokens: Tokens) -> Images:
        """The regression's images, where the climb begins."""
        tokens, images = tokens.float(), None
        for matrix, constant in self.maps:
            change = self._features(tokens, images) @ matrix + constant
            change = unpatchify(change, self.config.grid, self.config.patch_size)
            images = change if images is None else images + change
        assert images is not None  # for mypy
        return images

    def __call__(self, tokens: Tokens, steps: int = 16) -> Images:
        """Images near those with these tokens, each climbed to alone."""
        starts = self.guess(tokens).split(1)
        parts = zip(starts, tokens.float().split(1), strict=True)
        return torch.cat([self._climb(start, target, steps) for start, target in parts])

    @torch.no_grad()
    def _climb(self, start: Images, target: Tokens, steps: int) -> Images:
        z = torch.zeros_like(start).flatten(1)  # the image is start + L z

        def image(z: Tensor) -> Images:
            return start + (z @ self.scale.mT).view_as(start)

        for _ in range(steps):
            at = linearise(lambda z: self.function(image(z)) @ self.whiten, z)
            missing = target @ self.whiten - at.value
            noise = DAMPING * missing.square().mean().sqrt()
            step = _damped(at.push, at.pull, missing / noise, z, noise)

            def cost(z: Tensor, noise: Tensor = noise) -> Tensor:
                misfit = (target - self.function(image(z))) @ self.whiten / noise
                return misfit.square().sum() + z.square().sum()

            length, before = 1.0, cost(z)
            while length > SHORTEST and not cost(z + length * step) < before:
                length /= 2.5
            if length <= SHORTEST:
                break
            z = z + length * step
        return image(z)


def _ridge(rows: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix and constant that give what is wanted from rows, [k, n] and [k, m]."""
    mean, typical = rows.mean(0), wanted.mean(0)
    scale = (rows - mean).square().mean(0).sqrt().clamp(min=1e-6)
    standard = (rows - mean) / scale
    gram = (standard.mT @ standard).double()
    gram.diagonal().add_(RIDGE * len(rows))
    matrix = torch.linalg.solve(gram, (standard.mT @ (wanted - typical)).double()).float()
    matrix = matrix / scale[:, None]
    return matrix, typical - mean @ matrix


def _damped(push: Operator, pull: Operator, r: Tensor, z: Tensor, noise: Tensor) -> Tensor:
    """The ``s`` of least ``‖J s / noise - r‖² + ‖z + s‖²``, by conjugate gradients."""
    step = torch.zeros_like(z)
    direction = residual = pull(r) / noise - z
    size = first = residual.square().sum()
    for _ in range(PRODUCTS):
        product = pull(push(direction)) / noise**2 + direction
        length = size / (direction * product).sum()
        step = step + length * direction
        residual = residual - length * product
        new = residual.square().sum()
        if new < 1e-5 * first:
            break
        direction, size = residual + new / size * direction, new
    return step
