"""Trainings that are killed, as by a power cut: SIGKILL leaves a process no last word."""

import multiprocessing
import random
import time

import pytest
import safetensors.torch
import torch

from tests.vitlab.training.test_loop import lines_of
from vitlab.commands import main

# The server imports torch once; every training is a fresh process forked from it.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["vitlab.commands", "sklearn.datasets"])


def start(folder):
    options = "--data DIGITS --steps 60 --batch-size 16 --fraction 0.05 --mixup 0.2 --save-every 0"
    arguments = ["train", *options.split(), "--threads", "1", "--out", str(folder), "--resume"]
    process = CONTEXT.Process(target=main, args=(arguments,))
    process.start()
    return process


def wait_for_saves(process, folder, number):
    """Waits until a training has saved its state some times more, however busy the machine."""
    path, seen = folder / "state.pt", set()
    before = path.stat().st_mtime_ns if path.exists() else None
    while process.is_alive() and len(seen - {before}) < number:
        if path.exists():
            seen.add(path.stat().st_mtime_ns)
        time.sleep(0.001)


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.full)])
def test_a_training_killed_at_any_moment_ends_in_the_same_bytes(tmp_path, kills):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    warm = CONTEXT.Process(target=main, args=(["models"],))  # the server takes seconds to start
    warm.start()
    warm.join()
    process, began = start(whole), time.monotonic()
    wait_for_saves(process, whole, 1)
    ready = time.monotonic() - began
    process.join()
    assert process.exitcode == 0
    moments, steps = random.Random(kills), []
    for kill in range(kills):
        process = start(killed)
        if kill % 3 == 1:  # now and then before the first step
            time.sleep(moments.uniform(0, ready))
        else:
            wait_for_saves(process, killed, 3 if kill == 0 else moments.randint(1, 5))
        process.kill()
        process.join()
        if process.exitcode == 0:  # it was over before
            break
        if (killed / "state.pt").exists():
            steps.append(torch.load(killed / "state.pt", weights_only=True)["step"])
    process = start(killed)
    process.join()
    assert process.exitcode == 0
    assert steps == sorted(steps) and any(0 < step < 60 for step in steps), steps
    assert lines_of(killed) == lines_of(whole)
    assert {p.name for p in killed.iterdir()} == {p.name for p in whole.iterdir()}
    a, b = ((folder / "model.safetensors").read_bytes() for folder in (whole, killed))
    assert a == b and len(safetensors.torch.load(a)) > 10
