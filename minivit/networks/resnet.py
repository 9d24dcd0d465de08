"""The residual network of He et al. (2016), "Deep Residual Learning for Image Recognition"."""

from dataclasses import dataclass
from typing import Literal

from torch import nn

from minivit.networks.checks import check_config, check_images
from minivit.networks.model import Model
from minivit.networks.residual import BasicBlock, Bottleneck, ResidualBlock, Stem
from minivit.networks.shapes import Images, Logits, Maps, Size


@dataclass(frozen=True)
class ResNetConfig:
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

    def __post_init__(self) -> None:
        check_config(self)


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
