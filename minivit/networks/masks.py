"""Which patch may attend to which: in windows, or in a neighbourhood.

A mask is boolean, [tokens, tokens], true where the row's token may attend to the column's.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from minivit.networks.shapes import Grid, Mask


def window_mask(grid: Grid, window: int, class_token: bool = False, *, shift: int = 0) -> Mask:
    """Attention within windows that tile the grid, as in Liu et al. (2021), "Swin Transformer".

    The windows start at the upper left corner, or ``shift`` patches down and to the right of it:
    in every other block of a Swin, by half a window. Where they do not fill the grid, those at its
    edges are smaller. A class token, if there is one, comes first; it sees all, and all see it.
    """
    if window < 1:
        raise ValueError(f"a window's side must be at least 1: got {window}")
    if not 0 <= shift < window:
        raise ValueError(
            f"a shift is at least 0 and smaller than the window: got {shift}, {window}"
        )
    row, column = (position + window - shift for position in _positions(grid))
    return _allow(_same(row // window) & _same(column // window), class_token)


def local_mask(grid: Grid, kernel: int, class_token: bool = False) -> Mask:
    """Attention to a neighbourhood of k x k patches, as a k x k convolution has it.

    That of ConvViT in Park & Kim (2022), "How Do Vision Transformers Work?". At an edge the
    neighbourhood ends with the image.
    """
    if kernel < 1 or kernel % 2 == 0:
        raise ValueError(f"a neighbourhood around a patch has an odd side: got {kernel}")
    row, column = _positions(grid)
    far = torch.maximum((row[:, None] - row).abs(), (column[:, None] - column).abs())
    return _allow(far <= kernel // 2, class_token)


def _positions(grid: Grid) -> tuple[Tensor, Tensor]:
    """Row and column of every patch, each ``[patches]``."""
    row, column = torch.meshgrid(*(torch.arange(length) for length in grid), indexing="ij")
    return row.flatten(), column.flatten()


def _same(label: Tensor) -> Tensor:
    return label[:, None] == label


def _allow(mask: Tensor, class_token: bool) -> Tensor:
    """The mask with a first row and column that are true, if there is a class token."""
    return F.pad(mask, (1, 0, 1, 0), value=True) if class_token else mask
