"""Images cut into patches, in reading order, and put together again."""

import torch
from einops import rearrange

from minivit.shapes import Grid, Images, Patches, Size


def pair(size: Size | list[int]) -> tuple[int, int]:
    """Height and width: of a square where one number is given; other libraries give lists."""
    sides = tuple(size) if isinstance(size, tuple | list) else (size, size)
    whole = [isinstance(n, int | torch.SymInt) and not isinstance(n, bool) for n in sides]
    if len(sides) != 2 or not all(whole):
        raise ValueError(f"a size is a whole number, or two, height and width: got {size!r}")
    return sides


def grid_of(image_size: Size, patch_size: Size) -> Grid:
    """Rows and columns of patches, which must divide the image."""
    height, width = pair(image_size)
    rows, columns = pair(patch_size)
    if min(height, width, rows, columns) < 1 or height % rows or width % columns:
        image = f"an image of {height} x {width} pixels"
        raise ValueError(f"patches of {rows} x {columns} do not divide {image}")
    return height // rows, width // columns


def patchify(images: Images, patch_size: Size) -> Patches:
    """Cuts images into patches; a patch's numbers stand as in a convolution's weight."""
    rows, columns = grid_of((images.shape[-2], images.shape[-1]), patch_size)
    return rearrange(images, "b c (r h) (w v) -> b (r w) (c h v)", r=rows, w=columns)


def unpatchify(patches: Patches, grid: Grid, patch_size: Size) -> Images:
    """The inverse of :func:`patchify`, for a grid of rows and columns."""
    rows, columns = grid
    height, width = pair(patch_size)
    if patches.shape[-2] != rows * columns or patches.shape[-1] % (height * width):
        expected = f"[batch, {rows * columns}, channels * {height * width}]"
        raise ValueError(f"expected patches {expected}: got {list(patches.shape)}")
    return rearrange(patches, "b (r w) (c h v) -> b c (r h) (w v)", r=rows, h=height, v=width)
