"""The branches of a model undone one by one, with going back where a wrong solution was taken."""

import heapq
import math
from dataclasses import dataclass

import torch

from minivit.patches import pair
from minivit.shapes import Images, Tokens
from minivit.vit import PatchEmbedding, ViT
from vitlab.inversion.chain import Chain, ties
from vitlab.inversion.climb import Climb
from vitlab.inversion.embedding import EmbeddingInverse
from vitlab.inversion.folds import solutions
from vitlab.inversion.learned import TokenInverse
from vitlab.inversion.rows import SOLVED, row_solutions
from vitlab.inversion.solvers import relative_residual, solved

TRIES = 60  # branches that are undone for one picture
FIRST = 8  # tries that the first block counts for
CLIMB_STEPS, CLIMB_COST = 2, 3000.0  # where no place is left, one image nearer to it is tried
EARLY, LATE = 16, 6  # starts for the solutions of a mixing, in the first half and the second
NOISE = 0.02  # whitened, of further starts where these find none
WIDER, ALWAYS, MOST = 2.3, 0.002, 0.2  # how far solutions may be from the image's states
NEWTON = 20  # steps with an attention branch
ROUNDS = 6  # of the first block
SURE = 0.8  # of its tokens are found, if they are an image's
NEAR, DIFFERS = 0.1, 1e-3  # relative distances of a token of the first block
OUTLIER, FITS = 6, 0.05  # whitened misfit of such a token, over the median, and at least
CLOSE = 0.02  # such a misfit, below which no token is in doubt
PLANE = 1e-3  # relative distance from the embedding's images, above which tokens are not an image's
REFINED = 1e-13  # relative error, below which Gauss-Newton over all branches ends

Way = tuple[tuple[int, int, int], ...]  # level, solutions found there, which of them was taken


@dataclass
class Place:
    """Tokens at a level that an image may have, and an image with tokens near them."""

    cost: float  # how much less likely they are than the nearest ones
    level: int
    x: Tokens
    image: Images
    way: Way = ()
    climbed: bool = False

    def __lt__(self, other: "Place") -> bool:
        return (self.cost, self.level) < (other.cost, other.level)


class Peel:
    """The way back of a model with a linear patch embedding, for one picture at a time.

    Each branch is undone from what it computes for an image with tokens near those sought. Of its
    solutions the one nearest to the image's own tokens is followed, in the whitened metric; where
    none follows, or where the last tokens are no image's, the next likely one, wherever it was.
    """

    def __init__(self, model: ViT, at: str, climb: Climb) -> None:
        self.climb, self.chain = climb, Chain(model, at, torch.float64)
        self.whiten = climb.whiten.double()
        embedding = self.chain.model.patch_embedding
        assert isinstance(embedding, PatchEmbedding)  # for mypy
        self.inverse = EmbeddingInverse(embedding)

    @torch.no_grad()
    def __call__(self, y: Tokens, image: Images) -> None:
        """Looks for the image with tokens ``y`` at the last level, from one with tokens near them.

        Leaves the best in ``image``, with its ``error``, the ``way`` taken to it, how far the
        tokens of its patches were ``off`` the embedding's plane.
        """
        self.y, self.image = y, image.double()
        self.error = self._error(self.image)
        self.way: Way = ()
        self.off, self._stopped = math.inf, (len(self.chain.branches), "")
        waiting, self.tries = [Place(0.0, len(self.chain.branches), y, self.image)], 0
        while waiting and self.tries < TRIES and self.error > solved(y.dtype):
            self._down(heapq.heappop(waiting), waiting)

    def _down(self, place: Place, waiting: list[Place]) -> None:
        """Goes on from a place as far as solutions are found, and notes where others were."""
        if place.climbed:
            near = place.image.float(), place.x.float()
            place.image = self.climb.nearer(*near, place.level, CLIMB_STEPS).double()
        while place.level > 2:
            self.tries += 1
            after = self._undone(place)
            if not after:
                if not place.climbed:
                    fields = {"cost": place.cost + CLIMB_COST, "climbed": True}
                    heapq.heappush(waiting, Place(**vars(place) | fields))
                return
            for other in after[1:]:
                heapq.heappush(waiting, other)
            place = after[0]
        self.tries += FIRST
        image, off = self._first_block(place)
        error = self._error(image)
        if off < PLANE:
            image, error = self.refined(image, self.y)
        else:
            self._note(0, f"{off:.1g} off the embedding's plane")
        if error < self.error:
            self.image, self.error, self.way, self.off = image, error, place.way, off

    def _note(self, level: int, reason: str) -> None:
        self._stopped = min(self._stopped, (level, reason))

    @property
    def stopped(self) -> str:
        """The branch, counted from 0, that ended the way that came farthest, and why."""
        return "branch {}: {}".format(*self._stopped)

    def _error(self, image: Images) -> float:
        return relative_residual(lambda x: self.chain.states(x)[-1], image, self.y).item()

    def _undone(self, place: Place) -> list[Place]:
        """The places one level down, the nearest first; none if no solution is near the image."""
        level = place.level - 1
        branch, whiten = self.chain.branches[level], self.whiten[level]
        states = self.chain.states(place.image, place.level)
        near = states[level]

        def far(x: Tokens) -> float:
            return ((x - near) @ whiten).square().mean().sqrt().item()

        if branch.alone:
            found = row_solutions(branch, place.x, near, whiten)
        elif ties(branch):
            early = level < len(self.chain.branches) / 2
            starts = EARLY if early else LATE
            spread = NOISE * torch.linalg.inv(whiten)
            found = solutions(branch, place.x, near, far, starts, spread)
        else:
            inverse = branch.nearest(place.x, near, NEWTON)
            found = [inverse.x] * bool(inverse.residual < SOLVED)
        found.sort(key=far)
        distances = [far(x) for x in found]
        behind = (place.x - states[place.level]) @ self.whiten[place.level]
        bound = WIDER * behind.square().mean().sqrt().item() + ALWAYS
        if branch.alone or ties(branch):  # of which there are several solutions
            bound = min(bound, MOST)
        if not found or distances[0] > bound:
            nearest = f", the nearest {distances[0]:.2g} away" if found else ""
            self._note(level, f"{len(found)} solutions{nearest}")
        places = []
        for i, (x, distance) in enumerate(zip(found, distances, strict=True)):
            if distance < bound:
                cost = place.cost + near.numel() / 2 * ((distance / distances[0]) ** 2 - 1)
                way = (*place.way, (level, len(found), i))
                places.append(Place(cost, level, x, place.image, way))
        return places

    def _first_block(self, place: Place) -> tuple[Images, float]:
        """The image whose tokens after the first block are these, and how far it is off."""
        x, image = place.x, place.image
        if self.climb.first is not None:
            image = self._by_tokens(self.climb.first, x.float(), image.float()).double()
        for level in range(place.level - 1, -1, -1):
            branch, near = self.chain.branches[level], self.chain.states(image, level)[level]
            if ties(branch):
                far = lambda x, near=near: (x - near).norm().item()  # noqa: E731
                found = solutions(branch, x, near, far, LATE) or [near]
                x = min(found, key=lambda x: self._pixels(x)[1])
            else:
                x = branch.nearest(x, near, NEWTON).x
        return self._pixels(x)

    def _pixels(self, x: Tokens) -> tuple[Images, float]:
        """The image of tokens at level 0, and how far they are off the plane of embedded images."""
        config = self.chain.model.config
        blank = self.chain.embed(x.new_zeros(1, config.channels, *pair(config.image_size)))
        patches = (x - blank)[:, -math.prod(config.grid) :] + self.inverse.bias
        image = self.inverse.images(patches, config.grid)
        off = (self.chain.embed(image) - x).norm(dim=-1) / (x - blank).norm(dim=-1).median()
        return image, off.max().item()

    def _by_tokens(self, inverse: TokenInverse, y: Tokens, image: Images) -> Images:
        """The image by the first block's tokens, each found alone, and outliers again."""
        x, far = inverse.solve(y[0])
        weights = far.isfinite().to(x)
        if weights.mean() < SURE:  # no image's tokens
            return image
        for k in range(ROUNDS):
            image = self.climb.nearer(image, x[None], 1, 1 if k else 2, weights[:, None])
            near = self.climb.chain.states(image, 1)[1][0]
            misfit = ((x - near) @ self.climb.whiten[1]).square().mean(1).sqrt()
            fits = misfit < (OUTLIER * misfit.median()).clamp(min=FITS)
            if fits.all() and misfit.max() < CLOSE:
                break
            again, changed = inverse.nearest(y[0], near)
            changed &= ~fits & ((again - near).norm(dim=1) < NEAR * near.norm(dim=1))
            changed &= (again - x).norm(dim=1) > DIFFERS * x.norm(dim=1)
            x = torch.where(changed[:, None], again, x)
            weights = (fits | changed).to(x)
        return image

    @torch.no_grad()
    def refined(self, image: Images, y: Tokens) -> tuple[Images, float]:
        """The image after Gauss-Newton steps over all branches at once, and its tokens' error."""
        directions = torch.eye(image.numel()).to(image).view(-1, *image.shape[1:])
        error = self._error(image)
        for _ in range(3):
            begin = error
            _, moved = self.chain.jacobian(image, len(self.chain.branches), directions)
            jacobian = moved.flatten(0, 1)
            gram = jacobian.mT @ jacobian
            gram.diagonal().add_(1e-15 * gram.diagonal().mean())
            factor = torch.linalg.cholesky(gram)
            while error > REFINED:
                missing = (y - self.chain.states(image)[-1]).flatten()
                step = torch.cholesky_solve((jacobian.mT @ missing)[:, None], factor)
                reached = self._error(image + step.view_as(image))
                if not reached < error / 2:
                    break
                image, error = image + step.view_as(image), reached
            if error <= REFINED or not error < begin:
                break
        return image, error
