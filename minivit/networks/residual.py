"""The parts of a ResNet: its stem, and blocks of convolutions with a shortcut past them.

They are those of He et al. (2016), "Deep Residual Learning for Image Recognition".
"""

import torch.nn.functional as F
from torch import Tensor, nn

from minivit.networks.patches import check_images


def normalisation(kind: str, width: int) -> nn.Module:
    """What follows a convolution of this width: ``"batch"``, ``"layer"`` or ``"none"``.

    ``"batch"`` is BatchNorm (Ioffe & Szegedy 2015): mean and variance of a channel over the batch
    and all places, in evaluation those gathered while training. ``"layer"`` takes both over the
    channels and places of one picture, so that pictures do not see each other.

    Raises:
        ValueError: Another kind.
    """
    if kind == "batch":
        return nn.BatchNorm2d(width)
    if kind == "layer":
        return nn.GroupNorm(1, width)
    if kind == "none":
        return nn.Identity()
    raise ValueError(f"the norm is batch, layer or none: got {kind!r}")


def convolution(channels: int, width: int, side: int, stride: int, norm: str) -> nn.Conv2d:
    """A ``side x side`` convolution, padded so that stride 1 keeps the size of the map.

    It has a bias only where no norm follows, which would have one itself.
    """
    layer = nn.Conv2d(channels, width, side, stride, padding=side // 2, bias=norm == "none")
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class Stem(nn.Module):
    """From pictures to the first feature map: a convolution, a norm, a ReLU.

    Args:
        kind: ``"7x7"``, of stride 2, with max pooling of stride 2 behind it: a quarter of height
            and width are left. ``"3x3"``, of stride 1, for small pictures.
        channels: Channels of a picture.
        width: Channels of the map.
        norm: As for :func:`normalisation`.

    Raises:
        ValueError: Another kind or norm.
    """

    def __init__(self, kind: str, channels: int, width: int, norm: str = "batch") -> None:
        super().__init__()
        if kind not in ("7x7", "3x3"):
            raise ValueError(f"the stem is 7x7 or 3x3: got {kind!r}")
        self.channels, large = channels, kind == "7x7"
        self.conv = convolution(channels, width, 7 if large else 3, 2 if large else 1, norm)
        self.norm = normalisation(norm, width)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1) if large else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        """Turns images ``[batch, channels, height, width]`` into a map of ``width`` channels.

        Raises:
            ValueError: Images of another rank, number of channels, dtype or device.
        """
        check_images(images, self.channels, 1, self.conv.weight)
        return self.pool(F.relu(self.norm(self.conv(images))))


class ResidualBlock(nn.Module):
    """The frame of a block: ``relu(shortcut(x) + branch(x))``, or ``relu(branch(x))``.

    The shortcut is the identity where it can be. Where the block changes height, width or
    channels, it is a 1 x 1 convolution with a norm: option B of He et al. (2016).

    Args:
        channels: Channels of the map that comes in.
        width: Channels of the map that goes out.
        stride: 2 halves height and width (rounded up), 1 keeps them.
        norm: As for :func:`normalisation`.
        residual: Whether there is a shortcut.
    """

    def __init__(
        self, channels: int, width: int, stride: int, norm: str = "batch", residual: bool = True
    ) -> None:
        super().__init__()
        self.shortcut: nn.Module | None = nn.Identity() if residual else None
        if residual and (stride != 1 or channels != width):
            self.shortcut = nn.Sequential(
                convolution(channels, width, 1, stride, norm), normalisation(norm, width)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Maps ``[batch, channels, h, w]`` to ``[batch, width, h / stride, w / stride]``."""
        branch = self.branch(x)
        return F.relu(branch if self.shortcut is None else self.shortcut(x) + branch)

    def branch(self, x: Tensor) -> Tensor:
        """What is added to the shortcut, of the same shape."""
        raise NotImplementedError


class BasicBlock(ResidualBlock):
    """Two 3 x 3 convolutions, each with a norm. Arguments: :class:`ResidualBlock`'s."""

    def __init__(
        self, channels: int, width: int, stride: int, norm: str = "batch", residual: bool = True
    ) -> None:
        super().__init__(channels, width, stride, norm, residual)
        self.conv1 = convolution(channels, width, 3, stride, norm)
        self.norm1 = normalisation(norm, width)
        self.conv2 = convolution(width, width, 3, 1, norm)
        self.norm2 = normalisation(norm, width)

    def branch(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm1(self.conv1(x)))
        return self.norm2(self.conv2(x))


class Bottleneck(ResidualBlock):
    """A 3 x 3 convolution on a quarter of the channels, between two of 1 x 1.

    The stride is the 3 x 3 convolution's, as in torchvision ("v1.5"); in He et al. (2016) it was
    the first one's. Arguments: :class:`ResidualBlock`'s; ``width`` is a multiple of 4.
    """

    def __init__(
        self, channels: int, width: int, stride: int, norm: str = "batch", residual: bool = True
    ) -> None:
        super().__init__(channels, width, stride, norm, residual)
        narrow = width // 4
        self.conv1 = convolution(channels, narrow, 1, 1, norm)
        self.norm1 = normalisation(norm, narrow)
        self.conv2 = convolution(narrow, narrow, 3, stride, norm)
        self.norm2 = normalisation(norm, narrow)
        self.conv3 = convolution(narrow, width, 1, 1, norm)
        self.norm3 = normalisation(norm, width)

    def branch(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        return self.norm3(self.conv3(x))
