"""Which patches a token knows about, over many images: Raghu et al. (2021)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor, nn

from minivit.patches import patchify
from vitlab.instruments.filters import principal_components
from vitlab.instruments.grids import Grid
from vitlab.instruments.probes import ridge
from vitlab.instruments.representations import Places, representations
from vitlab.instruments.running import Images, expect
from vitlab.instruments.similarity import CKA, large


@dataclass(frozen=True, eq=False)
class Localisation:
    """How much each token is related to each patch: a measure that is 0 for unrelated ones."""

    places: Float[Tensor, "rows columns rows columns"]  # the token's position, then the patch's
    extra: Float[Tensor, "extra rows columns"]  # class token and registers, if any

    @property
    def own(self) -> Float[Tensor, "rows columns"]:
        """Each token with the patch at its own position."""
        return torch.einsum("rcrc->rc", self.places)

    @property
    def elsewhere(self) -> Float[Tensor, "rows columns"]:
        """Each token with the patches at all other positions, in the mean."""
        return (self.places.sum((2, 3)) - self.own) / (self.own.numel() - 1)

    @property
    def hits(self) -> Bool[Tensor, "rows columns"]:
        """Whether each token is most similar to its own patch."""
        return self.own >= self.places.amax((2, 3))

    @property
    def interior(self) -> Bool[Tensor, "rows columns"]:
        """Which positions are not at the image's edge."""
        inside = torch.zeros_like(self.own, dtype=torch.bool)
        inside[1:-1, 1:-1] = True
        return inside


def localisation(
    model: nn.Module, images: Images, name: str, *, grid: Grid | None = None
) -> Localisation:
    """The debiased CKA of a layer's token at every position with every patch's pixels.

    Batches, of four images or more, are averaged as by :func:`~vitlab.instruments.similarity.cka`.
    """
    cka, places = CKA(), None
    for batch in large(images):
        places = places or Places(model, batch, grid)
        tokens, patches, shape = _tokens_and_patches(model, batch, name, places)
        rows = {f"token {i} of {name}": t for i, t in enumerate(tokens.unbind(1))}
        cka.update(rows, {f"patch {i}": t for i, t in enumerate(patches.unbind(1))})
    return _located(cka.result().values, shape)


def readable(
    model: nn.Module,
    train: Float[Tensor, "train channels height width"],
    test: Float[Tensor, "test channels height width"],
    name: str,
    *,
    grid: Grid | None = None,
    components: int = 8,
) -> Localisation:
    """Measures how much of every patch a linear map can read from every token.

    It is ``R²`` of ridge regression from the token to the patch's leading principal components, on
    other images. What fraction of the token's variance they account for does not matter.
    """
    places = Places(model, train, grid)
    tokens, patches, shape = _tokens_and_patches(model, train, name, places)
    other_tokens, other_patches, _ = _tokens_and_patches(model, test, name, places)
    basis = principal_components(patches.flatten(0, 1)[:, None, None]).pictures[:components]
    y, other_y = ((p.double() @ basis.flatten(1).mT).flatten(1) for p in (patches, other_patches))
    # Of all components of a patch together: [patches, components] to [patches].
    variance = (other_y - other_y.mean(0)).square().sum(0).view(-1, len(basis))
    expect(variance.sum(1).all(), "test images that differ in every patch", "one alike in all")
    rows = []
    for i in range(tokens.shape[1]):
        left = (other_y - ridge(tokens[:, i], y, each=True)(other_tokens[:, i])).square().sum(0)
        rows.append(1 - left.view(variance.shape).sum(1) / variance.sum(1))
    return _located(torch.stack(rows), shape)


def _tokens_and_patches(
    model: nn.Module, images: Tensor, name: str, places: Places
) -> tuple[Float[Tensor, "batch tokens dim"], Float[Tensor, "batch patches pixels"], Grid]:
    """A layer's tokens, those without a position first; the image's patches; rows and columns."""
    ((_, output),) = representations(model, images, (name,)).items()
    extra, here = places.split(output)
    rows, columns = here.shape[1:3]
    height, width = images.shape[-2:]
    fits = rows * columns > 1 and not height % rows and not width % columns
    several = f"several positions of {name!r} that divide an image of {height} x {width} pixels"
    expect(fits, several, f"{rows} x {columns}")
    cut = patchify(images, (height // rows, width // columns))
    return torch.cat([extra, here.flatten(1, 2)], 1).cpu(), cut.cpu(), (rows, columns)


def _located(values: Float64[Tensor, "tokens patches"], grid: Grid) -> Localisation:
    table = values.unflatten(1, grid)
    extra = len(table) - grid[0] * grid[1]
    return Localisation(table[extra:].unflatten(0, grid), table[:extra])
