"""Speed, measured: run by ``make bench``; no test asserts a time."""

import argparse
import os

import numpy as np
import torch


def parser(description: str | None) -> argparse.ArgumentParser:
    """A command line with the rounds, and the threads to use."""
    options = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--rounds", type=int, default=15)
    return options


def parsed(options: argparse.ArgumentParser) -> argparse.Namespace:
    values = options.parse_args()
    torch.set_num_threads(values.threads)
    return values


def middle(ratios: np.ndarray) -> str:
    """The median of ratios, and the 95 % bootstrap interval of it."""
    draws = np.random.default_rng(0).choice(ratios, (2000, len(ratios)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return f"{np.median(ratios):.2f} ({low:.2f} to {high:.2f})"
