"""Pictures to patches and back, and the two stems: a linear map per patch, or convolutions.

The patch embedding is that of Dosovitskiy et al. (2021), "An Image is Worth 16x16 Words"; the
convolutional stem that of Xiao et al. (2021), "Early Convolutions Help Transformers See Better".
"""

import torch
from einops import rearrange
from torch import Tensor, nn

Size = int | tuple[int, int]  # a side, or height and width


def pair(size: Size) -> tuple[int, int]:
    """Gives height and width: of a square where one number is given.

    Raises:
        ValueError: Not one whole number, nor two.
    """
    sides = tuple(size) if isinstance(size, tuple | list) else (size, size)
    whole = [isinstance(n, int | torch.SymInt) and not isinstance(n, bool) for n in sides]
    if len(sides) != 2 or not all(whole):
        raise ValueError(f"a size is a whole number, or two, height and width: got {size!r}")
    return sides


def grid_of(image_size: Size, patch_size: Size) -> tuple[int, int]:
    """Counts patches: rows and columns.

    Args:
        image_size: Height and width in pixels, or one number for both.
        patch_size: Likewise, of a patch.

    Raises:
        ValueError: The patches do not divide the picture.
    """
    (height, width), (rows, columns) = pair(image_size), pair(patch_size)
    if min(height, width, rows, columns) < 1 or height % rows or width % columns:
        raise ValueError(
            f"patches of {rows} x {columns} do not divide a picture of {height} x {width} pixels"
        )
    return height // rows, width // columns


def patchify(images: Tensor, patch_size: Size) -> Tensor:
    """Cuts pictures into patches, in reading order.

    Args:
        images: ``[batch, channels, height, width]``.
        patch_size: Height and width of a patch in pixels, or one number for both.

    Returns:
        ``[batch, patches, channels * patch height * patch width]``: a patch's numbers stand in the
        order of a convolution's weight, channel first.

    Raises:
        ValueError: The patches do not divide the picture.
    """
    rows, columns = grid_of((images.shape[-2], images.shape[-1]), patch_size)
    return rearrange(images, "b c (r h) (w v) -> b (r w) (c h v)", r=rows, w=columns)


def unpatchify(patches: Tensor, grid: tuple[int, int], patch_size: Size) -> Tensor:
    """Puts patches back into pictures: the inverse of :func:`patchify`.

    Args:
        patches: ``[batch, patches, channels * patch height * patch width]``.
        grid: Rows and columns of patches.
        patch_size: Height and width of a patch in pixels, or one number for both.

    Returns:
        ``[batch, channels, height, width]``.

    Raises:
        ValueError: The grid or the patch size does not fit the patches.
    """
    (rows, columns), (height, width) = grid, pair(patch_size)
    if patches.shape[-2] != rows * columns or patches.shape[-1] % (height * width):
        raise ValueError(
            f"a grid of {rows} x {columns} with patches of {height} x {width} needs "
            f"[batch, {rows * columns}, channels * {height * width}]: got {list(patches.shape)}"
        )
    return rearrange(patches, "b (r w) (c h v) -> b c (r h) (w v)", r=rows, h=height, v=width)


def check_images(images: Tensor, channels: int, patch_size: Size, weight: Tensor) -> None:
    """Refuses what is no batch of pictures for a stem with this weight.

    Raises:
        ValueError: Wrong rank, channels, size, dtype or device.
    """
    if images.ndim != 4 or images.shape[1] != channels:
        raise ValueError(
            f"expected images [batch, {channels}, height, width]: got {list(images.shape)}"
        )
    grid_of((images.shape[2], images.shape[3]), patch_size)
    # Autocast makes the two alike; integers and float64 it leaves as they are.
    alike = images.dtype == weight.dtype or (
        images.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and torch.is_autocast_enabled(weight.device.type)
    )
    if images.device != weight.device or not alike:
        raise ValueError(
            f"expected images of {weight.dtype} on {weight.device}, as the model's weights: "
            f"got {images.dtype} on {images.device}"
        )


class PatchEmbedding(nn.Module):
    """A linear map from the pixels of a patch to a token, the same for all patches.

    Written as a convolution whose stride is its kernel's size: one product with the matrix
    ``projection.weight.flatten(1)`` for every row of :func:`patchify`.

    Args:
        patch_size: Height and width of a patch in pixels, or one number for both.
        dim: Width of a token.
        channels: Channels of a picture. Default: 3.
    """

    def __init__(self, patch_size: Size, dim: int, channels: int = 3) -> None:
        super().__init__()
        self.patch_size, self.channels = pair(patch_size), channels
        self.projection = nn.Conv2d(channels, dim, self.patch_size, stride=self.patch_size)
        # As torchvision's: tokens of variance 1 for pixels of variance 1.
        _initialise(self.projection, std=self.projection.weight[0].numel() ** -0.5)

    def forward(self, images: Tensor) -> Tensor:
        """Turns images ``[batch, channels, height, width]`` into tokens ``[batch, patches, dim]``.

        Raises:
            ValueError: Images of another rank, number of channels, dtype or device, or of a size
                that the patches do not divide.
        """
        check_images(images, self.channels, self.patch_size, self.projection.weight)
        return rearrange(self.projection(images), "b d r w -> b (r w) d")


class ConvStem(nn.Module):
    """Convolutions in place of the patch embedding, with as many tokens.

    3 x 3 convolutions of stride 2, each with BatchNorm and ReLU, halve the picture until one pixel
    is left of a patch; their channels double up to ``dim``, and a 1 x 1 convolution follows. For
    patches of 16 and ``dim=384`` these are the 48, 96, 192, 384 channels of Xiao et al. (2021).

    Args:
        patch_size: Side of a patch in pixels: a power of two.
        dim: Width of a token; a multiple of ``patch_size / 2``.
        channels: Channels of a picture. Default: 3.

    Raises:
        ValueError: Patches that are not square or no power of two, or a ``dim`` that cannot be
            halved often enough.
    """

    def __init__(self, patch_size: Size, dim: int, channels: int = 3) -> None:
        super().__init__()
        self.patch_size, self.channels = pair(patch_size), channels
        side = self.patch_size[0]
        if self.patch_size != (side, side) or side < 2 or side & (side - 1) or dim % (side // 2):
            raise ValueError(
                "a convolutional stem halves the picture: it needs a square patch whose side is a "
                f"power of two, and a dim divisible by half of it: got {self.patch_size}, dim={dim}"
            )
        layers: list[nn.Module] = []
        width = dim // (side // 2)
        while width <= dim:
            layers += [nn.Conv2d(channels, width, 3, stride=2, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(width), nn.ReLU()]
            channels, width = width, 2 * width
        self.layers, self.projection = nn.Sequential(*layers), nn.Conv2d(dim, dim, 1)
        _initialise(self.projection, std=(2 / dim) ** 0.5)  # as torchvision's

    def forward(self, images: Tensor) -> Tensor:
        """Turns images ``[batch, channels, height, width]`` into tokens ``[batch, patches, dim]``.

        Raises:
            ValueError: As for :class:`PatchEmbedding`.
        """
        check_images(images, self.channels, self.patch_size, self.projection.weight)
        return rearrange(self.projection(self.layers(images)), "b d r w -> b (r w) d")


def _initialise(convolution: nn.Conv2d, std: float) -> None:
    """Normal weights, and biases of zero."""
    nn.init.trunc_normal_(convolution.weight, std=std)
    if convolution.bias is not None:
        nn.init.zeros_(convolution.bias)
