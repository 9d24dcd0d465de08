"""How fast is minivit beside its peers? ``python -m benchmarks.speed --help``

Every round times each library once, in a new random order, so that a slow minute of the machine
hits all alike. Ratios are taken within a round; the table gives their median and a 95 % bootstrap
interval. The share of peak compares with the fastest float32 matrix product seen in the same run.
"""

import argparse
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.peers import LIBRARIES, PATCH, build
from benchmarks.report import write

BF16 = "minivit bf16"  # model.bfloat16(): the one line that the README documents


def seconds(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peak_flops() -> float:
    """Floating-point operations per second of the best of many float32 matrix products."""
    best = 0.0
    for size in (1024, 2048):
        a, b = torch.randn(size, size), torch.randn(size, size)
        best = max(best, *(2 * size**3 / seconds(lambda a=a, b=b: a @ b) for _ in range(10)))
    return best


def task(model: nn.Module, batch: int, backward: bool) -> Callable[[], object]:
    """One forward pass, or one forward and backward pass, on random images."""
    dtype = next(model.parameters()).dtype
    images = torch.randn(batch, 3, 224, 224, dtype=dtype)

    def forward() -> None:
        with torch.inference_mode():
            model(images)

    def forward_backward() -> None:
        model.zero_grad(set_to_none=True)
        model(images).float().square().mean().backward()

    return forward_backward if backward else forward


def interval(ratios: np.ndarray) -> tuple[float, float]:
    """95 % bootstrap interval of the median."""
    draws = np.random.default_rng(0).choice(ratios, (2000, len(ratios)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return float(low), float(high)


def compare(name: str, batch: int, backward: bool, rounds: int, peak: float) -> list[dict]:
    """Times all libraries on one task; a row for each, fastest first."""
    models = {library: build(library, name) for library in LIBRARIES}
    models[BF16] = build("minivit", name).bfloat16()
    with FlopCounterMode(display=False) as counter:
        models["torchvision"](torch.randn(batch, 3, 224, 224))
    flops = counter.get_total_flops() * (3 if backward else 1)  # a backward pass is two forward
    tasks = {label: task(model, batch, backward) for label, model in models.items()}
    for call in tasks.values():
        call()  # warm up
    times: dict[str, list[float]] = {label: [] for label in tasks}
    shuffle = random.Random(0)
    for _ in range(rounds):
        for label in shuffle.sample(list(tasks), len(tasks)):
            times[label].append(seconds(tasks[label]))
    ours = np.array(times["minivit"])
    rows = []
    for label, values in times.items():
        ratios = np.array(values) / ours
        median = float(np.median(values))
        rows.append({
            "model": name, "batch": batch, "task": "forward+backward" if backward else "forward",
            "library": label, "ms": 1e3 * median, "times minivit": float(np.median(ratios)),
            "interval": interval(ratios), "share of peak": flops / median / peak,
        })  # fmt: skip
    return sorted(rows, key=lambda row: row["ms"])


def aims(rows: list[dict]) -> str:
    """The two aims in figures: no peer faster by over 2 %, bfloat16 three times as fast as any."""
    lines = []
    for name, batch, what in dict.fromkeys((r["model"], r["batch"], r["task"]) for r in rows):
        same = [r for r in rows if (r["model"], r["batch"], r["task"]) == (name, batch, what)]
        ms = {row["library"]: row["ms"] for row in same}
        ours, half = ms.pop("minivit"), ms.pop(BF16)
        peer = min(ms, key=ms.__getitem__)
        lines.append(
            f"{name}, batch {batch}, {what}: {peer} is {ours / ms[peer] - 1:+.0%} faster than "
            f"minivit; minivit in bfloat16 {ms[peer] / half:.1f} times as fast as {peer}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(PATCH), choices=list(PATCH))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("_build/bench/speed.json"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    peak = peak_flops()
    print(f"{options.threads} threads, float32 matrix products {peak / 1e9:.0f} GFLOP/s at best")
    rows = []
    for name in options.models:
        for batch in options.batches:
            for backward in (False, True):
                found = compare(name, batch, backward, options.rounds, peak)
                rows += found
                print(f"\n{name}, batch {batch}, {found[0]['task']}")
                for row in found:
                    low, high = row["interval"]
                    ratio = f"{row['times minivit']:.2f} ({low:.2f} to {high:.2f})"
                    share = f"{row['share of peak']:.0%} of peak"
                    print(f"  {row['library']:14}{row['ms']:9.1f} ms   {ratio}   {share}")
    print(f"\n{aims(rows)}")
    settings = {
        "threads": options.threads,
        "rounds": options.rounds,
        "peak GFLOP/s": peak / 1e9,
    }
    write(options.out, rows, settings)


if __name__ == "__main__":
    main()
