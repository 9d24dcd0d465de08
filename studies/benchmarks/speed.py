"""How fast is minivit beside its peers? ``python -m studies.benchmarks.speed --help``

The same ViT from five libraries, each at the fastest setting its documentation names: eager float32
with torch's fused attention; none compiles. Weights are random: speed does not depend on them.
vit-pytorch's fast model is ``SimpleViT``, without a class token and biases in its attention: 2 %
and 0.5 % less work. Rounds are interleaved and ratios taken within a round: a slow minute of the
machine hits all alike.
"""

import os
from collections.abc import Callable
from itertools import product
from typing import Literal

import numpy as np
import torch
import tyro
from torch import nn

import minivit
from minivit.import_torchvision import imported, patch_torchvision_import
from studies.benchmarks import interleaved, middle

PATCH = {"vit_b_32": 32, "vit_b_16": 16}
BF16 = "minivit bf16"  # model.bfloat16(): the one line that the README documents


def _timm(name: str) -> nn.Module:
    patch_torchvision_import()  # timm imports torchvision itself
    import timm

    return timm.create_model(f"vit_base_patch{PATCH[name]}_224")


def _transformers(name: str) -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(patch_size=PATCH[name], num_labels=1000, attn_implementation="sdpa")
    model = ViTForImageClassification(config)
    model.register_forward_hook(lambda module, images, output: output.logits)
    return model


def _vit_pytorch(name: str) -> nn.Module:
    from vit_pytorch.simple_flash_attn_vit import SimpleViT

    return SimpleViT(
        image_size=224, patch_size=PATCH[name], num_classes=1000,
        dim=768, depth=12, heads=12, mlp_dim=3072, use_flash=True,
    )  # fmt: skip


LIBRARIES: dict[str, Callable[[str], nn.Module]] = {
    "minivit": minivit.create,
    "torchvision": lambda name: imported().models.get_model(name),
    "timm": _timm,
    "transformers": _transformers,
    "vit-pytorch": _vit_pytorch,
    BF16: lambda name: minivit.create(name).bfloat16(),
}


def task(model: nn.Module, batch: int, backward: bool) -> Callable[[], object]:
    """One forward pass, or one forward and backward pass, on random images."""
    images = torch.randn(batch, 3, 224, 224, dtype=next(model.parameters()).dtype)

    def forward() -> None:
        with torch.inference_mode():
            model(images)

    def forward_backward() -> None:
        model.zero_grad(set_to_none=True)
        model(images).float().square().mean().backward()

    return forward_backward if backward else forward


def compare(name: str, batch: int, backward: bool, rounds: int) -> None:
    """Times all libraries on one task, and prints a row for each, fastest first."""
    torch.manual_seed(0)
    models = {library: build(name).eval() for library, build in LIBRARIES.items()}
    calls = {library: task(model, batch, backward) for library, model in models.items()}
    times = {library: np.array(values) for library, values in interleaved(calls, rounds).items()}
    print(f"\n{name}, batch {batch}, forward{' and backward' if backward else ''}")
    for library in sorted(times, key=lambda library: np.median(times[library])):
        seconds = float(np.median(times[library]))
        ratio = middle(times[library] / times["minivit"])
        print(f"  {library:14}{1e3 * seconds:9.1f} ms   {ratio} times minivit")


def main(
    models: tuple[Literal["vit_b_32", "vit_b_16"], ...] = ("vit_b_32", "vit_b_16"),
    batches: tuple[int, ...] = (1, 8),
    rounds: int = 15,
    threads: int = os.cpu_count() or 1,
) -> None:
    torch.set_num_threads(threads)
    print(f"{threads} threads")
    for name, batch, backward in product(models, batches, (False, True)):
        compare(name, batch, backward, rounds)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
