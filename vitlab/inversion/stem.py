"""A convolutional stem undone, where nobody says which of its ReLUs are open."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from minivit.parts import ConvStem
from minivit.shapes import Images, Tokens
from vitlab.calls import expect

STEPS, LAST = 24, 4  # by lines, and of Newton's method
DOUBT = 0.03  # of what is missing, squared, that a step takes for noise
CLOSED = 1e-6  # of the largest, below which a unit of the last layer is closed: above rounding
FAINT = 1e-6  # of the largest singular value, below which rounded tokens tell nothing
SMALLEST = 1e-15  # standard deviation
KNOWN = 1e-16  # variance of a unit of the last layer that is known
MISSING = 1e-7  # relative, at which steps end: all ReLUs are right

Covariance = Float[Tensor, "pixels pixels"]


class StemInverse:
    """Finds the images whose patches of 4 x 4 pixels a stem turned into given tokens.

    The pixels are a Gaussian. Each ReLU of the first layer is replaced by the line that is nearest
    to it on average under that Gaussian, and what the line misses is noise; the tokens then give
    the next, narrower Gaussian, until every ReLU is open or closed and nothing is missing: the
    iterated posterior linearization filter of García-Fernández et al. (2015). A token depends on
    7 x 7 pixels; the noise of one token is taken to be independent of another's.
    """

    def __init__(self, stem: ConvStem, size: tuple[int, int]) -> None:
        expect(len(stem.layers) == 6, "a stem for patches of 4 x 4", f"{len(stem.layers)} layers")
        first, norm1, _, second, norm2, _ = stem.layers
        w1, w2 = _normed(first, norm1), _normed(second, norm2)
        self.stem, self.size = stem, size
        self.w1, self.w2 = w1.flatten(1), w2.flatten(1)
        channels = w1.shape[1]
        pixels = torch.arange(1, 1 + channels * math.prod(size)).to(w1).view(channels, *size)
        self.read = _windows(pixels, 3, 2, 1).long()  # [places, 27]: by a unit; 0 is the edge
        self.seen = _windows(pixels, 7, 4, 3).long()  # [tokens, 147]: by a token
        one = torch.eye(self.seen.shape[1]).to(w1).view(-1, channels, 7, 7)
        self.window = F.conv2d(one, w1, stride=2).flatten(1).mT  # [576, 147]: of a token's units
        n = len(one)
        self.learned = w1.new_zeros(1), w1.new_zeros(1, n, n)  # how far images may be off

    def before(self, tokens: Tokens) -> Float[Tensor, "places dim"]:
        """What the last ReLU gave, for the tokens of one image without positions."""
        last = self.stem.projection
        assert last.bias is not None  # for mypy
        return torch.linalg.solve(last.weight[..., 0, 0], (tokens[0] - last.bias).mT).mT

    @torch.no_grad()
    def __call__(
        self, target: Float[Tensor, "places dim"], start: Images, covariance: Covariance
    ) -> Images:
        """The image for which the last ReLU gives ``target``, in float64.

        ``covariance`` is that of the error of ``start``, by pixel.
        """
        known = target > CLOSED * target.amax()
        prior, image = torch.linalg.inv(covariance), start
        for _ in range(STEPS):
            before = self.stem.layers[:2](image)[0]
            missing = known * (target - self._last(before.relu()))
            if missing.norm() <= MISSING * target.norm():
                break
            slope, mean, missed = line(before, self.doubt(covariance)[0])
            slopes = known[..., None] * self._slopes(slope)
            noise = known[..., None] * ((self.w2 * _units(missed)) @ self.w2.mT) * known[:, None]
            noise.diagonal(dim1=1, dim2=2).add_(torch.where(known, DOUBT * missing**2 + KNOWN, 1))
            moved = F.pad((start - image).flatten(), (1, 0))[self.seen]
            lacking = known * (target - self._last(mean)) - (slopes @ moved[..., None])[..., 0]
            both = torch.cat([slopes, lacking[..., None]], 2)
            white = torch.linalg.solve_triangular(torch.linalg.cholesky(noise), both, upper=False)
            gram = white[..., :-1].mT @ white  # [tokens, 147, 148]
            n = len(prior) + 1
            total = gram.new_zeros(n, n + 1)  # the edge first, what is lacking last
            at = self.seen[..., None] * (n + 1) + F.pad(self.seen, (0, 1), value=n)[:, None]
            total.view(-1).index_add_(0, at.flatten(), gram.flatten())
            factor = torch.linalg.cholesky(prior + total[1:, 1:-1])
            image = start + torch.cholesky_solve(total[1:, -1:], factor).view_as(start)
            covariance = torch.cholesky_inverse(factor)
        return self._newton(target, known, image)

    def _newton(self, target: Tensor, known: Tensor, image: Images) -> Images:
        """Steps with every ReLU as it is, as long as less is missing after them."""

        def missing(image: Images) -> Tensor:
            return (target - self._last(self.stem.layers[:3](image)[0]))[known]

        for _ in range(LAST):
            slopes = self._slopes((self.stem.layers[:2](image)[0] > 0).to(image))
            rows = slopes.new_zeros(*slopes.shape[:2], image.numel() + 1)
            rows.scatter_(2, self.seen[:, None].expand_as(slopes), slopes)
            rows = rows[known][:, 1:]
            step = torch.linalg.lstsq(rows, missing(image)[:, None], rcond=FAINT).solution
            nearer = image + step.view_as(image)
            if not missing(nearer).norm() < missing(image).norm() / 2:
                break
            image = nearer
        return image

    def doubt(self, covariance: Covariance) -> tuple[Tensor, Tensor]:
        """The standard deviation of what each first ReLU reads, and the covariance by token."""
        wider = F.pad(covariance, (1, 0, 1, 0))
        read, seen = (wider[i[:, :, None], i[:, None]] for i in (self.read, self.seen))
        variance = ((self.w1 @ read) * self.w1).sum(2).mT  # [channels, places]
        rows = self.size[0] // 2
        return variance.clamp(min=0).sqrt().unflatten(1, (rows, -1)), seen

    def push(
        self, image: Images, directions: Float[Tensor, "n ..."], doubt: float
    ) -> Float[Tensor, "tokens dim n"]:
        """How fast the tokens go along directions from an image: by the lines of all ReLUs.

        ``doubt`` is how far the image is off, as a fraction of ``learned``.
        """
        spread, covariance = doubt * self.learned[0], doubt**2 * self.learned[1]
        slope, mean, missed = line(self.stem.layers[:2](image)[0], spread)
        slopes = self._slopes(slope)
        variance = ((slopes @ covariance) * slopes).sum(2)
        variance = variance + (_units(missed) @ self.w2.mT.square())[:, 0]
        slopes = line(self._last(mean), variance.sqrt())[0][..., None] * slopes
        windows = F.pad(directions.flatten(1), (1, 0)).mT[self.seen]  # [tokens, 147, n]
        return self.stem.projection.weight[..., 0, 0] @ slopes @ windows

    def _slopes(self, slope: Float[Tensor, "c h w"]) -> Float[Tensor, "tokens dim pixels"]:
        """How fast what the last ReLU reads goes with the pixels of each token."""
        return (self.w2 * _units(slope)) @ self.window

    def _last(self, units: Float[Tensor, "c h w"]) -> Float[Tensor, "tokens dim"]:
        """Before the last ReLU."""
        return self.stem.layers[3:5](units[None])[0].flatten(1).mT


def line(mean: Tensor, spread: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of the ReLU of a Gaussian: the slope that fits best, its mean, and the variance missed."""
    normal = torch.distributions.Normal(torch.zeros_like(mean), 1)
    spread = spread.clamp(min=SMALLEST)
    z = mean / spread
    slope, density = normal.cdf(z), normal.log_prob(z).exp()
    expected = mean * slope + spread * density
    square = (mean**2 + spread**2) * slope + mean * spread * density
    return slope, expected, (square - expected**2 - slope**2 * spread**2).clamp(min=0)


def _normed(convolution: nn.Module, norm: nn.Module) -> Tensor:
    """The weights of a convolution and the BatchNorm behind it together."""
    assert isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)  # for mypy
    assert norm.running_var is not None
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    return (convolution.weight * scale[:, None, None, None]).detach()


def _windows(maps: Float[Tensor, "c h w"], side: int, stride: int, edge: int) -> Tensor:
    """What each output of a convolution reads, [places, numbers]."""
    return F.unfold(maps[None], side, stride=stride, padding=edge)[0].mT


def _units(values: Float[Tensor, "c h w"]) -> Float[Tensor, "tokens 1 units"]:
    """Those of the first layer that each token reads."""
    return _windows(values, 3, 2, 1)[:, None]
