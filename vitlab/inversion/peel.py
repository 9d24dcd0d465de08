"""The branches of a model undone one by one, with going back where a wrong solution was taken."""

import heapq
import math
from dataclasses import dataclass, field

import torch

from minivit.shapes import Images, Tokens
from minivit.vit import ViT
from vitlab.inversion.chain import FREED, Chain, ties
from vitlab.inversion.climb import Climb
from vitlab.inversion.folds import solutions
from vitlab.inversion.rows import SOLVED, row_solutions
from vitlab.inversion.solvers import relative_residual, solved
from vitlab.inversion.stem import CLOSED

CLIMBS, CLIMB_STEPS = 5, 2  # how often an image is brought nearer, and by how many steps
TRIES = 60  # branches that are undone before the next
FIRST = 8  # tries that the first block counts for
STARTS = 10  # for the solutions of a mixing
WIDER, ALWAYS, MOST = 4.0, 0.002, 0.4  # how far solutions may be from the image's states
NEWTON = 8  # steps with an attention branch
LAST_STEPS = 4  # down to the first block
NO_IMAGE = 1e-3  # relative distance from an image's tokens, above which they are none's
REFINED = 1e-13  # relative error, below which Gauss-Newton over all branches ends
SMALL = 1e-12  # of the Jacobian's norm, its damping

Way = tuple[tuple[int, int, int], ...]  # level, solutions found there, which of them was taken


@dataclass(order=True)
class Place:
    """Tokens at a level that an image may have."""

    cost: float  # how much less likely they are than the nearest ones
    level: int
    x: Tokens = field(compare=False)
    way: Way = field(default=(), compare=False)


class Peel:
    """The way back of a model with a linear patch embedding, for one picture at a time.

    Each branch is undone from what it computes for an image with tokens near those sought. Of its
    solutions the one nearest to the image's own tokens is followed, in the whitened metric; where
    none follows, or where the last tokens are no image's, the next likely one, wherever it was, and
    after some tries the image is brought nearer.
    """

    def __init__(self, model: ViT, at: str, climb: Climb) -> None:
        self.climb, self.chain = climb, Chain(model, at, torch.float64)
        self.whiten = climb.whiten.double()
        self.bottom = FREED if self.chain.stem is None else 0

    @torch.no_grad()
    def __call__(self, y: Tokens, image: Images) -> None:
        """Looks for the image with tokens ``y`` at the last level, from one with tokens near them.

        Leaves the best in ``image``, with its ``error``, the ``way`` taken to it, how far the
        tokens after the first block were ``off`` an image's.
        """
        self.y, self.image = y, image.double()
        self.error = self._error(self.image)
        self.way: Way = ()
        self.found = False  # the output of a stem, for which no other tokens need be tried
        last = len(self.chain.branches)
        self.off, self._stopped = math.inf, (last, "")
        self.near, moved = image.float(), torch.zeros_like(y.float())
        for _ in range(CLIMBS):
            self.near, moved = self.climb.freed(self.near, moved, y.float(), last, CLIMB_STEPS)
            self.states = self.chain.states(self.near.double(), last, moved.double())
            waiting, self.tries = [Place(0.0, last, y)], 0
            while waiting and self.tries < TRIES and not self._ended:
                self._down(heapq.heappop(waiting), waiting)
            if self._ended:
                break

    def _down(self, place: Place, waiting: list[Place]) -> None:
        """Goes on from a place as far as solutions are found, and notes where others were."""
        while place.level > self.bottom:
            self.tries += 1
            after = self._undone(place)
            if not after:
                return
            for other in after[1:]:
                heapq.heappush(waiting, other)
            place = after[0]
        self.tries += FIRST
        image = self._first_block(place.x) if self.bottom else self._stem(place.x)
        off = self._off(image, place.x)
        if off > NO_IMAGE:
            return self._note(0, f"{off:.1g} off the nearest image's tokens")
        image, error = self.refined(image, self.y)
        if error < self.error:
            self.image, self.error, self.way = image, error, place.way
            self.off = self._off(image, place.x)

    def _note(self, level: int, reason: str) -> None:
        self._stopped = min(self._stopped, (level, reason))

    @property
    def stopped(self) -> str:
        """The branch, counted from 0, that ended the way that came farthest, and why."""
        return "branch {}: {}".format(*self._stopped)

    @property
    def _ended(self) -> bool:
        return self.found or self.error <= solved(self.y.dtype)

    def _error(self, image: Images) -> float:
        return relative_residual(lambda x: self.chain.states(x)[-1], image, self.y).item()

    def _undone(self, place: Place) -> list[Place]:
        """The places one level down, the nearest first; none if no solution is near the image."""
        level = place.level - 1
        branch, whiten, near = self.chain.branches[level], self.whiten[level], self.states[level]

        def far(x: Tokens) -> float:
            return ((x - near) @ whiten).square().mean().sqrt().item()

        if branch.alone:
            found = row_solutions(branch, place.x, near, whiten)
        elif ties(branch):
            found = solutions(branch, place.x, near, far, STARTS)
        else:
            inverse = branch.nearest(place.x, near, NEWTON)
            found = [inverse.x] * bool(inverse.residual < SOLVED)
        found.sort(key=far)
        distances = [far(x) for x in found]
        behind = (place.x - self.states[place.level]) @ self.whiten[place.level]
        bound = min(WIDER * behind.square().mean().sqrt().item() + ALWAYS, MOST)
        if not found or distances[0] > bound:
            nearest = f", the nearest {distances[0]:.2g} away" if found else ""
            self._note(level, f"{len(found)} solutions{nearest}")
        places = []
        for i, (x, distance) in enumerate(zip(found, distances, strict=True)):
            if distance < bound:
                cost = place.cost + near.numel() / 2 * ((distance / distances[0]) ** 2 - 1)
                way = (*place.way, (level, len(found), i))
                places.append(Place(cost, level, x, way))
        return places

    def _first_block(self, x: Tokens) -> Images:
        """The image whose tokens after the first block are nearest to these.

        Where its MLP comes last, what that read is found token by token, and gives the image from
        which the way along the pixels leads down.
        """
        x, image, inverse = x.float(), self.near, self.climb.first
        if inverse is not None:
            before, found = inverse.solve(x[0])
            image = self.climb.nearer(image, before[None], 1, CLIMB_STEPS, found.to(x)[:, None])
        return self.climb.nearer(image, x, FREED, LAST_STEPS).double()

    def _stem(self, x: Tokens) -> Images:
        """The image of which a convolutional stem computes these, if it does of any."""
        stem, near, scale = self.chain.stem, self.near.double(), self.climb.scale.double()
        assert stem is not None  # for mypy
        alone = x - self.chain.embed(near) + stem.stem(near)  # without positions
        before = stem.before(alone)
        if before.amin() < -CLOSED * before.amax():
            return near
        self.found = True
        start = self.climb.guess(alone, [self.climb.stem_map]).double()
        return stem(before, start, scale @ scale.mT)

    def _off(self, image: Images, x: Tokens) -> float:
        """How far tokens at the bottom are off the image's."""
        missing = (self.chain.states(image, self.bottom)[-1] - x).norm(dim=-1)
        return (missing / x.norm(dim=-1).median()).max().item()

    @torch.no_grad()
    def refined(self, image: Images, y: Tokens) -> tuple[Images, float]:
        """The image after Gauss-Newton steps over all branches at once, and its tokens' error.

        What is missing is that of float64, and so are the directions where float32's do not do.
        """
        directions = torch.eye(image.numel()).to(image).view(-1, *image.shape[1:])
        error, last = self._error(image), len(self.chain.branches)
        for chain in (self.climb.chain, self.chain, self.chain):
            pace = chain.jacobian(image.to(chain.dtype), last, directions.to(chain.dtype))
            jacobian = pace.flatten(0, 1).double()
            small = SMALL * torch.linalg.matrix_norm(jacobian) * torch.eye(image.numel()).to(image)
            q, triangle = torch.linalg.qr(torch.cat([jacobian, small]))
            while error > REFINED:
                missing = (y - self.chain.states(image)[-1]).flatten()
                step = (q[: len(missing)].mT @ missing)[:, None]
                step = torch.linalg.solve_triangular(triangle, step, upper=True).view_as(image)
                reached = self._error(image + step)
                if not reached < error / 2:
                    break
                image, error = image + step, reached
            if error <= solved(y.dtype):
                break
        return image, error
