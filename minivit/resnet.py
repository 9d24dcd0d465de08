"""The residual network of He et al. (2016), "Deep Residual Learning for Image Recognition"."""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import nn

from minivit.model import Config, Model, check_images
from minivit.shapes import Images, Logits, Maps, NewMaps, Size


def normalisation(kind: str, width: int) -> nn.Module:
    """What follows a convolution: ``"batch"``, ``"layer"`` or ``"none"``.

    ``"batch"`` is BatchNorm (Ioffe and Szegedy 2015): mean and variance of a channel over the batch
    and all positions, in evaluation those gathered in training. ``"layer"`` takes both over the
    channels and positions of one image, so that images do not see each other.
    """
    return {
        "batch": lambda: nn.BatchNorm2d(width),
        "layer": lambda: nn.GroupNorm(1, width),
        "none": nn.Identity,
    }[kind]()


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
    """From images to the first feature map: a convolution, a norm, a ReLU.

    ``"7x7"`` has stride 2, followed by max pooling of stride 2, which leave a quarter of height
    and width; ``"3x3"`` has stride 1, for small images.
    """

    def __init__(self, kind: str, channels: int, width: int, norm: str = "batch") -> None:
        super().__init__()
        large = kind == "7x7"
        self.conv = convolution(channels, width, 7 if large else 3, 2 if large else 1, norm)
        self.norm = normalisation(norm, width)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1) if large else nn.Identity()

    def forward(self, images: Images) -> Maps:
        return self.pool(F.relu(self.norm(self.conv(images))))


class ResidualBlock(nn.Module):
    """The frame of a block: ``relu(shortcut(x) + branch(x))``, or ``relu(branch(x))``.

    The shortcut is the identity where it can be. Where the block changes height, width or
    channels, it is a 1 x 1 convolution with a norm: option B of He et al. (2016). ``stride`` 2
    halves height and width, rounded up.
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

    def forward(self, x: Maps) -> NewMaps:
        branch = self.branch(x)
        return F.relu(branch if self.shortcut is None else self.shortcut(x) + branch)

    def branch(self, x: Maps) -> NewMaps:
        """What is added to the shortcut."""
        raise NotImplementedError


class BasicBlock(ResidualBlock):
    """Two 3 x 3 convolutions, each with a norm."""

    def __init__(
        self, channels: int, width: int, stride: int, norm: str = "batch", residual: bool = True
    ) -> None:
        super().__init__(channels, width, stride, norm, residual)
        self.conv1 = convolution(channels, width, 3, stride, norm)
        self.norm1 = normalisation(norm, width)
        self.conv2 = convolution(width, width, 3, 1, norm)
        self.norm2 = normalisation(norm, width)

    def branch(self, x: Maps) -> NewMaps:
        x = F.relu(self.norm1(self.conv1(x)))
        return self.norm2(self.conv2(x))


class Bottleneck(ResidualBlock):
    """A 3 x 3 convolution on a quarter of the channels, between two of 1 x 1.

    The stride is the 3 x 3 convolution's, as in torchvision ("v1.5"); in He et al. (2016) it was
    the first one's. ``width`` is a multiple of 4.
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

    def branch(self, x: Maps) -> NewMaps:
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        return self.norm3(self.conv3(x))


@dataclass(frozen=True)
class ResNetConfig(Config):
    """The sizes and choices of a ResNet. The defaults are ResNet-50's.

    ``width`` is that of the stem and, in the first stage, of the 3 x 3 convolutions; it doubles
    from stage to stage, and each stage after the first halves height and width. A bottleneck's
    output has four times as many channels. Without ``residual`` it is He et al.'s plain network.
    """

    image_size: Size = 224  # what it is meant for; it takes every size
    channels: int = 3
    classes: int = 1000
    stem: Literal["7x7", "3x3"] = "7x7"
    block: Literal["basic", "bottleneck"] = "bottleneck"
    stages: tuple[int, ...] = (3, 4, 6, 3)  # number of blocks in each
    width: int = 64
    norm: Literal["batch", "layer", "none"] = "batch"
    residual: bool = True


class ResNet(Model):
    """A stem, blocks in stages, the mean over all positions, a linear head.

    Equal to torchvision's ``ResNet`` for its sizes, and initialised alike.
    """

    config: ResNetConfig

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        self.config = c = config
        kind: type[ResidualBlock] = BasicBlock if c.block == "basic" else Bottleneck
        self.stem = Stem(c.stem, c.channels, c.width, c.norm)
        self.blocks = nn.ModuleList()  # of all stages in a row
        channels = c.width
        for stage, blocks in enumerate(c.stages):
            width = c.width * 2**stage * (4 if kind is Bottleneck else 1)
            for i in range(blocks):
                stride = 2 if stage and i == 0 else 1
                self.blocks.append(kind(channels, width, stride, c.norm, c.residual))
                channels = width
        self.head = nn.Linear(channels, c.classes)

    def forward(self, images: Images) -> Logits:
        return self.head(self.features(images).mean((2, 3)))

    def features(self, images: Images) -> Maps:
        """The last block's map, before the mean."""
        check_images(images, self)
        x = self.stem(images)
        for block in self.blocks:
            x = block(x)
        return x
