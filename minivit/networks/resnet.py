"""The residual network of He et al. (2016), "Deep Residual Learning for Image Recognition"."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from minivit.networks.model import (
    Model,
    check_choices,
    check_counts,
    check_flags,
    check_positive,
    check_size,
)
from minivit.networks.patches import Size
from minivit.networks.residual import BasicBlock, Bottleneck, ResidualBlock, Stem


@dataclass(frozen=True)
class ResNetConfig:
    """Everything that makes one ResNet differ from another. The defaults are ResNet-50's.

    Args:
        image_size: Height and width in pixels, or one number for both, of the pictures that the
            model is meant for. It takes every size.
        channels: Channels of a picture.
        classes: Number of logits.
        stem: ``"7x7"`` or ``"3x3"``, as for :class:`~minivit.networks.residual.Stem`.
        block: ``"basic"`` or ``"bottleneck"``.
        stages: Number of blocks in each stage. Each stage after the first halves height and width.
        width: Channels of the stem and, in each stage, of the 3 x 3 convolutions: ``width`` in the
            first, then doubled from stage to stage. A bottleneck's output has four times as many.
        norm: After every convolution: ``"batch"``, ``"layer"`` or ``"none"``.
        residual: Whether blocks have shortcuts. Without them it is the plain network of He et al.

    Raises:
        ValueError: A field that is none of its choices, or not positive.
    """

    image_size: Size = 224
    channels: int = 3
    classes: int = 1000
    stem: Literal["7x7", "3x3"] = "7x7"
    block: Literal["basic", "bottleneck"] = "bottleneck"
    stages: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64
    norm: Literal["batch", "layer", "none"] = "batch"
    residual: bool = True

    def __post_init__(self) -> None:
        check_positive(self, "channels", "classes", "width")
        check_counts(self, "stages")
        check_flags(self, "residual")
        check_choices(self, stem=("7x7", "3x3"), block=("basic", "bottleneck"))
        check_choices(self, norm=("batch", "layer", "none"))
        check_size(self)


class ResNet(Model):
    """A stem, blocks in stages, the mean over all places, a linear head.

    Equal to torchvision's ``ResNet`` for its sizes, and initialised alike.

    Args:
        config: The sizes and choices.
    """

    config: ResNetConfig
    head: nn.Linear

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

    def forward(self, images: Tensor) -> Tensor:
        """Gives logits ``[batch, classes]`` for images ``[batch, channels, height, width]``.

        Raises:
            ValueError: Images of another rank, number of channels, dtype or device.
        """
        return self.head(self.features(images).mean((2, 3)))

    def features(self, images: Tensor) -> Tensor:
        """Gives the last block's map, ``[batch, channels, rows, columns]``, before the mean."""
        x = self.stem(images)
        for block in self.blocks:
            x = block(x)
        return x
