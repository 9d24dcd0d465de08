"""Where on the picture a token knows about: token to patch localisation, Raghu et al. (2021).

Over many pictures, the vectors of a token in one place are compared with the pixels of the patch in
another, by CKA. A model localises if each token is like its own patch and unlike the rest.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from einops import rearrange
from torch import Tensor, nn

from minivit.analysis.filters import principal_components
from minivit.analysis.layout import Grid
from minivit.analysis.representations import patch_grid, places, representations
from minivit.analysis.ridge import ridge
from minivit.analysis.streaming import CKA
from minivit.networks.patches import patchify


@dataclass(frozen=True, eq=False)
class Localisation:
    """How much each token has to do with each patch: a measure that is 0 for nothing."""

    places: Tensor  # [rows, columns, rows, columns]: the token's place, then the patch's
    extra: Tensor  # [extra, rows, columns]: class token and registers, if any

    @property
    def own(self) -> Tensor:
        """With the patch in its own place, for each token, ``[rows, columns]``."""
        rows, columns = self.places.shape[:2]
        return self.places.flatten(2).flatten(0, 1).diagonal().view(rows, columns)

    @property
    def elsewhere(self) -> Tensor:
        """The mean over the patches in all other places, for each token, ``[rows, columns]``."""
        patches = self.own.numel()
        return (self.places.sum((2, 3)) - self.own) / (patches - 1)

    @property
    def hits(self) -> Tensor:
        """Whether a token is nearest to its own patch of all, ``[rows, columns]``."""
        return self.own >= self.places.amax((2, 3))

    @property
    def interior(self) -> Tensor:
        """Which places are not at the picture's edge, ``[rows, columns]``."""
        inside = torch.zeros_like(self.own, dtype=torch.bool)
        inside[1:-1, 1:-1] = True
        return inside


def localisation(
    model: nn.Module,
    images: Tensor | Iterable[Tensor],
    name: str,
    *,
    grid: Grid | None = None,
) -> Localisation:
    """Compares what a layer gives in every place with the pixels of every patch, by debiased CKA.

    Tokens that stand nowhere, such as the class token, are compared as well. A feature map's places
    divide the picture as its rows and columns do.

    Args:
        model: Any module. It is used in its mode of evaluation, and comes back as it was.
        images: One batch, ``[n, channels, height, width]``, or an iterable of batches, as for
            :func:`~minivit.analysis.similarity.cka`: hundreds of pictures or more.
        name: The layer, as for :func:`~minivit.recording.record`.
        grid: Rows and columns of patches, for tokens; a feature map has its own. Default: those of
            the model's last convolution.

    Raises:
        ValueError: There is one place alone, places do not divide the picture, tokens do not fit
            the grid, there are several layers, or a patch or token is the same in all pictures.
        TypeError, LookupError, RuntimeError: As for :func:`~minivit.recording.record`.
    """
    seen, shape = CKA(), (0, 0)
    for batch in [images] if isinstance(images, Tensor) else images:
        grid = grid or patch_grid(model, batch)
        tokens, patches, shape = _tokens_and_patches(model, batch, name, grid)
        seen.update(
            {f"token {i} of {name}": t for i, t in enumerate(tokens.unbind(1))},
            {f"patch {i}": t for i, t in enumerate(patches.unbind(1))},
        )
    return _located(seen.result().values, shape)


def readable(
    model: nn.Module,
    train: Tensor,
    test: Tensor,
    name: str,
    *,
    grid: Grid | None = None,
    components: int = 8,
) -> Localisation:
    """Measures how much of every patch can be read from every token by a linear map.

    The measure is ``R²``, the share of a patch's variance that ridge regression from the token
    explains on pictures that it was not fitted to: 1 where the patch is all there, 0, or a little
    less, where nothing is. Unlike for CKA it does not matter how large a share of the token the
    patch makes up. A patch is here its leading principal components: most of natural patches.

    Args:
        model: Any module. It is used in its mode of evaluation, and comes back as it was.
        train: Pictures to fit the maps to, ``[n, channels, height, width]``; several times more
            than a token has numbers.
        test: Others.
        name: The layer, as for :func:`~minivit.recording.record`.
        grid: Rows and columns of patches, for tokens; a feature map has its own. Default: those of
            the model's last convolution.
        components: How many components of a patch to read. Default: 8, or all if there are fewer.

    Raises:
        ValueError, TypeError, LookupError, RuntimeError: As for :func:`localisation`.
    """
    grid = grid or patch_grid(model, train)
    tokens, patches, shape = _tokens_and_patches(model, train, name, grid)
    other_tokens, other_patches, _ = _tokens_and_patches(model, test, name, grid)
    basis = principal_components(patches.flatten(0, 1)[:, None, None]).pictures[:components]
    y, other_y = ((p.double() @ basis.flatten(1).mT).flatten(1) for p in (patches, other_patches))
    # Of all a patch's components together: [places, components] to [places].
    variance = (other_y - other_y.mean(0)).square().sum(0).view(-1, len(basis))
    if not variance.sum(1).all():
        raise ValueError("a patch is the same in all test pictures: there is nothing to read of it")
    rows = []
    for i in range(tokens.shape[1]):
        left = (other_y - ridge(tokens[:, i], y, each=True)(other_tokens[:, i])).square().sum(0)
        rows.append(1 - left.view(variance.shape).sum(1) / variance.sum(1))
    return _located(torch.stack(rows), shape)


def _tokens_and_patches(
    model: nn.Module, images: Tensor, name: str, grid: Grid | None
) -> tuple[Tensor, Tensor, Grid]:
    """Tokens ``[n, extra + places, dim]``, patches ``[n, places, pixels]``, rows and columns."""
    seen = representations(model, images, (name,))
    if len(seen) != 1:
        raise ValueError(f"expected the name of one layer: got {name!r}, for {list(seen)}")
    extra, here = places(seen.popitem()[1], grid)
    shape = rows, columns = here.shape[1], here.shape[2]
    height, width = images.shape[-2:]
    if rows * columns < 2 or height % rows or width % columns:
        raise ValueError(
            f"expected {name!r} to give two places or more that divide a picture of {height} x "
            f"{width} pixels: got {rows} x {columns}"
        )
    cut = patchify(images, (height // rows, width // columns))
    return torch.cat([extra, here.flatten(1, 2)], 1).cpu(), cut.cpu(), shape


def _located(values: Tensor, shape: Grid) -> Localisation:
    """Sorts ``[extra + places, places]``."""
    rows, columns = shape
    table = rearrange(values, "t (r c) -> t r c", r=rows)
    extra = len(table) - rows * columns
    return Localisation(table[extra:].unflatten(0, (rows, columns)), table[:extra])
