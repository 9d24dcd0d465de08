"""An image near the one that has given tokens: a guess learned from pictures, then a climb."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from minivit.mixer import Mixer
from minivit.patches import patchify, unpatchify
from minivit.shapes import Images, Tokens
from minivit.vit import ViT
from vitlab.boundary import checked
from vitlab.calls import expect, refuse_training
from vitlab.inversion.chain import FREED, Chain
from vitlab.inversion.learned import TokenInverse, around, ridge

ROUNDS = 2  # of regression: the second one sees where the first one's tokens are wrong
ROWS = 8  # patches of each picture that a round learns from
RIDGE = 3e-3  # added to the variance of the standardised features
FLOOR = 1e-3  # of the mean variance of the tokens, below which a direction is not enlarged
OWN = 0.1  # of the error's variance is taken to be each pixel's own
DAMPING = 2.0  # of the misfit, the noise that a step allows for
FINE, COARSE = 2, 4  # steps along all directions, and before them along one in so many
SHORTEST = 0.02  # of a step, below which no more are taken
FREE, REACH = 8, 0.5  # tokens that are freed, and how far they move, whitened
BATCH = 50
TOKENS = 4  # one in so many is for the inverse of the first block's MLP

Maps = list[tuple[Tensor, Tensor]]  # of regressions: matrix and constant


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
        self.config = model.config
        self.places = math.prod(self.config.grid)
        self.maps: Maps = []
        pictures = pictures.float()
        self.chain = Chain(model, at, torch.float32)
        self.whiten = _whitening(self.chain, pictures)
        generator = torch.Generator().manual_seed(0)
        self.first: TokenInverse | None = None  # of the first block's MLP, if that is the bottom
        mlp = self.chain.branches[1]
        if mlp.alone and not mlp.turned and self.chain.stem is None:
            batches = pictures.split(BATCH)
            states = [torch.stack(self.chain.states(batch, 2)[1:]) for batch in batches]
            some = torch.cat(states, 1)  # [2, pictures, tokens, dim]
            order = torch.rand(*some.shape[1:3], 1, generator=generator).argsort(1)
            chosen = order[:, : some.shape[2] // TOKENS]  # other places in each picture
            self.first = TokenInverse(mlp, *some.take_along_dim(chosen[None], 2).flatten(1, 2))
        tokens = self._tokens(pictures)
        order = torch.rand(len(pictures), self.places, generator=generator).argsort(1)[:, :ROWS]
        guess = None
        for _ in range(ROUNDS):
            self.maps.append(self._map(tokens, pictures, order, guess))
            guess = torch.cat([self.guess(batch) for batch in tokens.split(BATCH)])
        assert guess is not None  # for mypy
        error = (guess - pictures).flatten(1).double()
        covariance = (1 - OWN) * error.mT @ error / len(error)
        covariance.diagonal().add_(OWN * error.square().mean(0))
        values, vectors = torch.linalg.eigh(covariance)
        # The likeliest direction first, each as long as its standard deviation: L L^T is the
        # error's covariance.
        self.scale = (vectors * values.sqrt()).flip(1).float()
        self.directions = self.scale.mT.reshape(-1, *pictures.shape[1:])
        if (stem := self.chain.stem) is not None:
            stem.learned = stem.doubt(self.scale @ self.scale.mT)
            with torch.no_grad():
                embedded = torch.cat([stem.stem(batch) for batch in pictures.split(BATCH)])
            self.stem_map = self._map(embedded, pictures, order)
        missing = (tokens[:BATCH] - self._tokens(guess[:BATCH])) @ self.whiten[-1]
        self.typical = missing.square().mean().sqrt()  # of a guess

    def _tokens(self, images: Images) -> Tokens:
        with torch.no_grad():
            return torch.cat([self.chain.states(batch)[-1] for batch in images.split(BATCH)])

    def _map(
        self, tokens: Tokens, pictures: Images, order: Tensor, guess: Images | None = None
    ) -> tuple[Tensor, Tensor]:
        """Reads what a guess misses of patches off their tokens, at places in this order."""
        missing = pictures if guess is None else pictures - guess
        patches = patchify(missing, self.config.patch_size).take_along_dim(order[..., None], 1)
        rows = list[Tensor]()
        for batch in torch.arange(len(pictures)).split(BATCH):
            features = self._features(tokens[batch], None if guess is None else guess[batch])
            rows.append(features.take_along_dim(order[batch, :, None], 1))
        return ridge(torch.cat(rows).flatten(0, 1), patches.flatten(0, 1), RIDGE)

    def _features(self, tokens: Tokens, guess: Images | None) -> Tensor:
        """What a patch is read off: [batch, places, features]."""
        own, rows = tokens[:, -self.places :], self.config.grid[0]
        if guess is None:
            return around(own, rows)
        missing = own - self._tokens(guess)[:, -self.places :]
        patches = patchify(guess, self.config.patch_size)
        return torch.cat([around(missing, rows), around(patches, rows), own], 2)

    @torch.no_grad()
    def guess(self, tokens: Tokens, maps: Maps | None = None) -> Images:
        """The regression's images, where the climb begins."""
        tokens, images = tokens.float(), None
        for matrix, constant in self.maps if maps is None else maps:
            change = self._features(tokens, images) @ matrix + constant
            change = unpatchify(change, self.config.grid, self.config.patch_size)
            images = change if images is None else images + change
        assert images is not None  # for mypy
        return images

    def __call__(self, tokens: Tokens, steps: int = 10) -> Images:
        """Images near those with these tokens, each climbed to alone.

        The last 2 ``steps`` are along all directions of the pixels, those before along a quarter.
        """
        parts = zip(self.guess(tokens).split(1), tokens.float().split(1), strict=True)
        return torch.cat([self.nearer(*part, len(self.chain.branches), steps) for part in parts])

    def nearer(
        self, start: Images, target: Tokens, level: int, steps: int, weights: Tensor | None = None
    ) -> Images:
        """An image whose tokens at a level are nearer to these than those of ``start``."""
        return self.freed(start, None, target, level, steps, weights)[0]

    @torch.no_grad()
    def freed(
        self,
        start: Images,
        moved: Tokens | None,
        target: Tokens,
        level: int,
        steps: int,
        weights: Tensor | None = None,
    ) -> tuple[Images, Tokens]:
        """Such an image, and what its tokens after the first block are to be moved by.

        Where the first block folds, a patch may have no way down to the one sought. Those tokens
        that fit worst are therefore unknowns of their own there, unless ``moved`` is None.
        """
        free = 0 if moved is None or self.first is None or level <= FREED else FREE
        moved = torch.zeros_like(target) if moved is None else moved
        weights = start.new_ones(1, 1) if weights is None else weights
        chain, whiten = self.chain, self.whiten[level].to(start)
        scale, directions = self.scale.to(start), self.directions.to(start)
        n = len(scale)

        def missing(image: Images, moved: Tokens) -> Tensor:
            tokens = chain.states(image, level, moved)[-1]
            return weights * ((target - tokens)[0] @ whiten)

        worst = missing(start, moved).norm(dim=1).topk(free).indices
        places = torch.eye(target.shape[1]).to(start)[worst]  # [free, tokens]
        unit = REACH * torch.linalg.inv(self.whiten[FREED].to(start))
        along = torch.einsum("kt,ed->tdke", places, unit).flatten(2)
        z = start.new_zeros(n + along.shape[2])  # the image is start + L z, then tokens are moved

        def at(z: Tensor) -> tuple[Images, Tokens]:
            return start + (scale @ z[:n]).view_as(start), moved + along @ z[n:]

        coarse = directions[: n // COARSE]
        for some, number in (coarse, steps - FINE), (directions, min(steps, FINE)):
            for _ in range(number):
                image, by = at(z)
                r = missing(image, by)
                size = r.square().mean().sqrt()
                doubt = (size / self.typical).clamp(max=1).item()
                pace = whiten.mT @ chain.jacobian(image, level, some, by, along, doubt)
                jacobian = (weights[..., None] * pace).flatten(0, 1)
                gram, noise = jacobian.mT @ jacobian, DAMPING * size
                slope = jacobian.mT @ r.flatten() / noise**2 - torch.cat([z[: len(some)], z[n:]])
                gram = gram / noise**2
                gram.diagonal().add_(1)
                factor, failed = torch.linalg.cholesky_ex(gram)
                if failed:  # lost to rounding: no farther at this step's directions
                    break
                step = torch.cholesky_solve(slope[:, None], factor)[:, 0]
                step = torch.cat([step[: len(some)], z.new_zeros(n - len(some)), step[len(some) :]])

                def cost(z: Tensor, noise: Tensor = noise) -> Tensor:
                    misfit = missing(*at(z)) / noise
                    return misfit.square().sum() + z.square().sum()

                length, before = 1.0, cost(z)
                while length > SHORTEST and not cost(z + length * step) < before:
                    length /= 2.5
                if length <= SHORTEST:
                    break
                z = z + length * step
        return at(z)


def _whitening(chain: Chain, pictures: Images) -> Float[Tensor, "level dim dim"]:
    """What makes the covariance of the tokens at each level the identity, nearly."""
    covariance, mean = torch.zeros(1).double(), torch.zeros(1).double()
    for batch in pictures.split(BATCH):
        states = torch.stack(chain.states(batch))  # [level, batch, tokens, dim]
        rows = states.flatten(1, 2).double()
        covariance = covariance + rows.mT @ rows / pictures.shape[0] / states.shape[2]
        mean = mean + states.sum(1).double() / len(pictures)
    values, vectors = torch.linalg.eigh(covariance - mean.mT @ mean / mean.shape[1])
    values = values.clamp(min=0)
    floor = FLOOR * values.mean(1, keepdim=True)
    return (vectors / (values + floor).sqrt()[:, None]).float()
