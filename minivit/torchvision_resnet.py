"""torchvision's ResNets: their names, and the sizes that their shapes tell."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from minivit.model import check_state
from minivit.resnet import ResNet, ResNetConfig

KEY = "layer1.0.conv1.weight"  # every torchvision ResNet has it, and nothing else
# Parts of a name: ours, torchvision's.
NAMES = (
    ("stem.conv", "conv1"),
    ("stem.norm", "bn1"),
    ("stem.pool", "maxpool"),
    ("norm", "bn"),
    ("shortcut", "downsample"),
    ("head", "fc"),
)
COUNT = "num_batches_tracked"  # a buffer of BatchNorm that plays no part in what it computes


def converted(given: Mapping[str, Tensor], module: nn.Module | None) -> ResNet:
    """Makes a ResNet of the state of a torchvision ``ResNet``, and the module if there."""
    config = ResNetConfig(**_sizes(given))
    with torch.device("meta"):  # no memory and no random numbers for what is replaced at once
        model = ResNet(config)
    if module is not None:
        _check_settings(module, model)
    ours = {_torchvision_name(key, config.stages): key for key in model.state_dict()}
    # torchvision's oldest files have no counts.
    counts = {name: torch.tensor(0) for name in ours if name.endswith(COUNT)}
    state = counts | dict(given)
    check_state(state, {name: model.state_dict()[key] for name, key in ours.items()})
    copies = {key: state[name].detach().clone() for name, key in ours.items()}
    model.load_state_dict(copies, assign=True)
    return model


def _check_settings(module: nn.Module, model: ResNet) -> None:
    """Refuses a module that differs in what no shape tells: strides, pooling, ReLUs, epsilons."""
    parts = dict(module.named_modules(remove_duplicate=False))
    expected = {name: "ReLU(inplace=True)" for name in parts if name.endswith("relu")}
    expected["avgpool"] = str(nn.AdaptiveAvgPool2d((1, 1)))
    for name, part in model.named_modules():
        if isinstance(part, nn.Conv2d | nn.BatchNorm2d) or name == "stem.pool":
            expected[_torchvision_name(name, model.config.stages)] = str(part)
    for name, value in expected.items():
        if str(parts.get(name)) != value:  # Conv2d(64, 64, kernel_size=(3, 3), ...)
            raise ValueError(f"expected {value} in {name}: got {parts.get(name)}")


def check_ranks(state: Mapping[str, Any], ranks: Mapping[str, int], kind: str) -> None:
    """Refuses a state dict without the tensors, of so many axes, from which sizes are read."""
    for key, rank in ranks.items():
        shape = getattr(state.get(key), "shape", None)
        if shape is None or len(shape) != rank:
            got = "none" if shape is None else list(shape)
            raise ValueError(f"expected a {kind} with {key} of {rank} axes: got {got}")


def _torchvision_name(name: str, stages: tuple[int, ...]) -> str:
    """blocks.3.norm1 -> layer2.0.bn1, where the first stage has three blocks."""
    for ours, theirs in NAMES:
        name = name.replace(ours, theirs)
    if not name.startswith("blocks."):
        return name
    _, block, part = name.split(".", 2)
    stage, i = 0, int(block)
    while i >= stages[stage]:
        i -= stages[stage]
        stage += 1
    return f"layer{stage + 1}.{i}.{part}"


def _sizes(state: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the fields of a :class:`ResNetConfig` from the shapes of torchvision's tensors."""
    check_ranks(state, {"conv1.weight": 4, "fc.weight": 2}, "ResNet")
    width, channels, side, _ = state["conv1.weight"].shape
    layers = [key.split(".") for key in state if key.startswith("layer") and "." in key]
    blocks = {(stage, block) for stage, block, *_ in layers}
    stages = [stage for stage, _ in sorted(blocks)]  # layer1, layer1, layer1, layer2, ...
    return {
        "channels": channels,
        "classes": len(state["fc.weight"]),
        "stem": "7x7" if side == 7 else "3x3",
        "block": "bottleneck" if "layer1.0.conv3.weight" in state else "basic",
        "stages": tuple(stages.count(stage) for stage in sorted(set(stages))),
        "width": width,
    }
