"""What the first layer looks for: filters as pictures, their components, size and spectrum."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from minivit.networks.patches import grid_of, patchify
from minivit.networks.shapes import Size


def first_filters(model: nn.Module, name: str | None = None) -> Tensor:
    """The filters of a model's first convolution, such as a patch embedding, as pictures.

    Args:
        model: Any module.
        name: The name of a convolution in it. Default: the first of all.

    Returns:
        ``[filters, channels, height, width]``, a copy without gradients: values are weights, for
        inputs as the model gets them.

    Raises:
        TypeError: There is no convolution, or the module of this name is none.
        LookupError: No module has this name.
        ValueError: The filters are of one pixel.
    """
    modules = dict(model.named_modules())
    if name is not None and name not in modules:
        raise LookupError(f"the model has no module {name!r}: it has {list(modules)}")
    found = [m for n, m in modules.items() if isinstance(m, nn.Conv2d) and name in (None, n)]
    if not found:
        what = (
            type(model).__name__ if name is None else f"{name!r}, a {type(modules[name]).__name__}"
        )
        raise TypeError(
            f"expected a convolution, whose weights can be shown as pictures: got {what}"
        )
    weight = found[0].weight.detach().clone()
    if weight[0, 0].numel() == 1:
        raise ValueError(f"filters of one pixel have no pattern: got {list(weight.shape)}")
    return weight


def cut_patches(images: Tensor, patch_size: Size) -> Tensor:
    """All patches of images, as pictures of their own.

    Args:
        images: ``[batch, channels, height, width]``.
        patch_size: Height and width of a patch in pixels, or one number for both.

    Returns:
        ``[batch * patches, channels, patch height, patch width]``.

    Raises:
        ValueError: The patches do not divide the pictures.
    """
    (height, width), channels = images.shape[-2:], images.shape[1]
    rows, columns = grid_of((height, width), patch_size)
    flat = patchify(images, patch_size).flatten(0, 1)
    return flat.unflatten(1, (channels, height // rows, width // columns))


@dataclass(frozen=True, eq=False)
class Components:
    """Pictures that are orthonormal, the most important first."""

    pictures: Tensor  # [k, channels, height, width], each of length 1, float64
    variance: Tensor  # [k], along each


def principal_components(pictures: Tensor) -> Components:
    """The directions in which pictures, or filters, differ most from their mean.

    Their sign means nothing; here the largest entry of each is positive.

    Args:
        pictures: ``[n, channels, height, width]``, two or more.

    Returns:
        As many as the mean leaves dimensions, at most ``n - 1``.

    Raises:
        ValueError: Another shape, fewer than two, or all the same.
    """
    flat = _flat(pictures, least=2)
    centred = flat - flat.mean(0)
    if centred.norm() <= flat.numel() ** 0.5 * torch.finfo(flat.dtype).eps * flat.norm():
        raise ValueError("pictures that are all the same have no components")
    # By the smaller of the two square matrices: there may be a million patches.
    if len(flat) > flat.shape[1]:
        variance, vectors = torch.linalg.eigh(centred.mT @ centred / (len(flat) - 1))
        basis, variance = vectors.mT.flip(0), variance.flip(0)
    else:
        _, s, basis = torch.linalg.svd(centred, full_matrices=False)
        variance = s**2 / (len(flat) - 1)
    k = min(len(flat) - 1, flat.shape[1])
    basis, variance = basis[:k], variance[:k].clamp(min=0)
    largest = basis.gather(1, basis.abs().argmax(1, keepdim=True))
    return Components((basis * largest.sign()).unflatten(1, pictures.shape[1:]), variance)


def subspace_overlap(a: Tensor, b: Tensor) -> Tensor:
    """How much of the space that pictures span lies in the space that others span.

    The mean squared cosine of the principal angles: 1 for the same space, 0 for orthogonal ones.
    ``k`` directions of ``n`` chosen at random overlap by ``k / n`` with any others.

    Args:
        a: ``[k, channels, height, width]``, orthonormal, such as leading principal components.
        b: Likewise, as many or more.

    Returns:
        One number.

    Raises:
        ValueError: Shapes that do not fit, or pictures that are not orthonormal.
    """
    left, right = _flat(a, least=1), _flat(b, least=1)
    if left.shape[1] != right.shape[1] or len(left) > len(right):
        raise ValueError(
            "expected pictures of one size, at least as many in the second: got "
            f"{list(a.shape)} and {list(b.shape)}"
        )
    for basis in left, right:
        if (basis @ basis.mT - torch.eye(len(basis)).to(basis)).abs().max() > 1e-6:
            raise ValueError("expected orthonormal pictures, such as principal components")
    return (left @ right.mT).square().sum() / len(left)


def _flat(pictures: Tensor, least: int) -> Tensor:
    """Checked and flattened: ``[n, channels * height * width]``, float64."""
    if pictures.ndim != 4 or len(pictures) < least or not pictures.numel():
        raise ValueError(
            f"expected {least} pictures or more [n, channels, height, width]: got "
            f"{list(pictures.shape)}"
        )
    if not pictures.isfinite().all():
        raise ValueError("expected pictures of finite numbers: got others")
    return pictures.detach().double().flatten(1)
