"""torchvision's models as minivit's: the same numbers under our names."""

from collections.abc import Mapping

from torch import Tensor, nn

from minivit import torchvision_resnet as resnet
from minivit import torchvision_vit as vit
from minivit.model import SOURCES
from minivit.resnet import ResNet
from minivit.vit import ViT

__all__ = ["from_torchvision", "is_torchvisions"]


def from_torchvision(
    source: nn.Module | Mapping[str, Tensor], heads: int | None = None
) -> ViT | ResNet:
    """Makes minivit's model of torchvision's ``VisionTransformer`` or ``ResNet``, equal to it.

    Sizes are read from the shapes. Every key is used once and every shape is checked. The numbers
    are copied: the source stays as it is, and the copy has its dtype and device.

    Args:
        source: The module, or its state dict. From a module come dropout and whether it is
            training, too; from a state dict a model in evaluation mode is made.
        heads: Attention heads of a ViT, which shapes do not tell. Default: the module's; for a
            state dict 12, 16, 16 for tokens 768, 1024, 1280 wide, as in ViT-B, L, H.

    Returns:
        The model, without ``preprocess`` and ``classes``.

    Raises:
        ValueError: Keys missing, surplus or of another shape, numbers that are not finite, a
            module that is none of these models or differs in what no shape tells (the epsilon of a
            norm, a stride, an activation), or heads that cannot be known or are none of a ResNet's.
    """
    if not isinstance(source, nn.Module | Mapping):
        raise ValueError(f"expected {SOURCES}: got {type(source).__name__}")
    module = source if isinstance(source, nn.Module) else None
    state = source.state_dict() if isinstance(source, nn.Module) else source
    model: ViT | ResNet
    if resnet.KEY in state:
        if heads is not None:
            raise ValueError(f"a ResNet has no attention heads: got heads={heads}")
        model = resnet.converted(state, module)
    else:
        model = vit.converted(state, module, heads)
    return model.train(module is not None and module.training)


def is_torchvisions(state: Mapping[str, object]) -> bool:
    """Says whether a state dict has torchvision's names, by those that minivit never uses."""
    return resnet.KEY in state or any(key.startswith("encoder.") for key in state)
