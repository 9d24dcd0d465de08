"""Convolutions in place of the patch embedding, with as many tokens.

Xiao et al. (2021), "Early Convolutions Help Transformers See Better".
"""

from einops import rearrange
from torch import nn

from minivit.networks.patches import pair
from minivit.networks.shapes import Images, Size, Tokens


class ConvStem(nn.Module):
    """Convolutions of stride 2, each with BatchNorm and ReLU, until a patch is one pixel.

    Their channels double up to ``dim``, and a 1 x 1 convolution follows: for patches of 16 and
    ``dim=384`` the paper's 48, 96, 192, 384. A patch's side must be a power of two, and half of it
    divide ``dim``.
    """

    def __init__(self, patch_size: Size, dim: int, channels: int = 3) -> None:
        super().__init__()
        patch = pair(patch_size)
        side = patch[0]
        if patch != (side, side) or side < 2 or side & (side - 1) or dim % (side // 2):
            raise ValueError(
                "a convolutional stem halves the image: it needs a square patch whose side is a "
                f"power of two, and a dim divisible by half of it: got {patch}, dim={dim}"
            )
        layers: list[nn.Module] = []
        width = dim // (side // 2)
        while width <= dim:
            layers += [nn.Conv2d(channels, width, 3, stride=2, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(width), nn.ReLU()]
            channels, width = width, 2 * width
        self.layers = nn.Sequential(*layers)
        self.projection = nn.Conv2d(dim, dim, 1)
        nn.init.trunc_normal_(self.projection.weight, std=(2 / dim) ** 0.5)  # as torchvision's
        nn.init.zeros_(self.projection.bias)  # type: ignore[arg-type]

    def forward(self, images: Images) -> Tokens:
        maps = self.projection(self.layers(images))
        return rearrange(maps, "b d rows columns -> b (rows columns) d")
