"""How fast is minivit beside its peers? ``python -m studies.benchmarks.speed --help``

The same ViT from five libraries, each at the fastest setting its documentation names: eager float32
with torch's fused attention; none compiles. Weights are random: speed does not depend on them.
vit-pytorch's fast model is ``SimpleViT``, which has no class token (49 tokens instead of 50, 196
instead of 197) and no biases in its attention: 2 % and 0.5 % less work than the others do.

Every round times each library once, in a new random order, so that a slow minute of the machine
hits all alike. Ratios are taken within a round; the table gives their median and a 95 % bootstrap
interval. The share of peak compares with the fastest float32 matrix product seen in the same run.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import minivit
from minivit.import_torchvision import imported, mend
from studies.benchmarks.common import interval, parser, write
from studies.shared.timing import interleaved

PATCH = {"vit_b_32": 32, "vit_b_16": 16}
BF16 = "minivit bf16"  # model.bfloat16(): the one line that the README documents


class Logits(nn.Module):
    """A Hugging Face classifier that returns its logits like the others."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images).logits


def _timm(name: str) -> nn.Module:
    mend()  # timm imports torchvision itself
    import timm

    return timm.create_model(f"vit_base_patch{PATCH[name]}_224")


def _transformers(name: str) -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(patch_size=PATCH[name], num_labels=1000, attn_implementation="sdpa")
    return Logits(ViTForImageClassification(config))


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


def peak_flops() -> float:
    """Floating-point operations per second of the best of many float32 matrix products."""
    best = 0.0
    for size in (1024, 2048):
        a, b = torch.randn(size, size), torch.randn(size, size)
        (seconds,) = interleaved({size: lambda a=a, b=b: a @ b}, rounds=10).values()
        best = max(best, 2 * size**3 / min(seconds))
    return best


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


def compare(name: str, batch: int, backward: bool, rounds: int, peak: float) -> list[dict]:
    """Times all libraries on one task; a row for each, fastest first."""
    torch.manual_seed(0)
    models = {library: build(name).eval() for library, build in LIBRARIES.items()}
    with FlopCounterMode(display=False) as counter:
        models["torchvision"](torch.randn(batch, 3, 224, 224))
    flops = counter.get_total_flops() * (3 if backward else 1)  # a backward pass is two forward
    calls = {library: task(model, batch, backward) for library, model in models.items()}
    times = {library: np.array(values) for library, values in interleaved(calls, rounds).items()}
    rows = []
    for library, values in times.items():
        ratios, median = values / times["minivit"], float(np.median(values))
        rows.append({
            "model": name, "batch": batch, "task": "forward+backward" if backward else "forward",
            "library": library, "ms": 1e3 * median, "times minivit": float(np.median(ratios)),
            "interval": interval(ratios), "share of peak": flops / median / peak,
        })  # fmt: skip
    return sorted(rows, key=lambda row: row["ms"])


def aims(rows: list[dict]) -> str:
    """The two aims in figures: no peer faster by over 2 %, bfloat16 three times as fast as any."""
    milliseconds: dict[str, dict[str, float]] = {}
    for row in rows:
        of = f"{row['model']}, batch {row['batch']}, {row['task']}"
        milliseconds.setdefault(of, {})[row["library"]] = row["ms"]
    lines = []
    for of, ms in milliseconds.items():
        ours, half = ms.pop("minivit"), ms.pop(BF16)
        peer = min(ms, key=ms.__getitem__)
        lines.append(
            f"{of}: {peer} is {ours / ms[peer] - 1:+.0%} faster than "
            f"minivit; minivit in bfloat16 {ms[peer] / half:.1f} times as fast as {peer}"
        )
    return "\n".join(lines)


def main() -> None:
    options = parser(__doc__, "speed")
    options.add_argument("--models", nargs="+", default=list(PATCH), choices=list(PATCH))
    options.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    options.add_argument("--rounds", type=int, default=15)
    options = options.parse_args()
    torch.set_num_threads(options.threads)
    peak = peak_flops()
    print(f"{options.threads} threads, float32 matrix products {peak / 1e9:.0f} GFLOP/s at best")
    tasks = [(name, batch, backward) for name in options.models for batch in options.batches
             for backward in (False, True)]  # fmt: skip
    rows = []
    for name, batch, backward in tasks:
        ranking = compare(name, batch, backward, options.rounds, peak)
        rows += ranking
        print(f"\n{name}, batch {batch}, {ranking[0]['task']}")
        for row in ranking:
            low, high = row["interval"]
            ratio = f"{row['times minivit']:.2f} ({low:.2f} to {high:.2f})"
            share = f"{row['share of peak']:.0%} of peak"
            print(f"  {row['library']:14}{row['ms']:9.1f} ms   {ratio}   {share}")
    print(f"\n{aims(rows)}")
    about = {"threads": options.threads, "rounds": options.rounds, "peak GFLOP/s": peak / 1e9}
    write(options.out, rows, about)


if __name__ == "__main__":
    main()
