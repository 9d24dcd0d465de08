"""Threads that share a model: each block sees what its own thread computes, and nothing stays."""

import asyncio
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
import torchvision
from torch import nn

import minivit
from minivit import record, replace
from minivit.hooks import uncompiled
from tests.minivit.test_recording import is_clean
from tests.parity import close, draw
from vitlab.instruments.running import evaluating

THREADS, CALLS = 8, 25


def in_threads(work):
    """Runs ``work(i)`` in as many threads as ``THREADS``, all begun together."""
    begin = threading.Barrier(THREADS)

    def run(i):
        begin.wait()
        return work(i)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def picture(i):
    return torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(i))


def model_of(name):
    if name == "torchvision":
        return draw(torchvision.models.VisionTransformer(16, 8, 2, 2, 8, 16)).eval()
    sizes = {"image_size": 16, "patch_size": 8, "dim": 8, "depth": 2, "heads": 2}
    return draw(minivit.create("vit_b_32", mlp_ratio=2, classes=3, **sizes)).eval()


@pytest.mark.parametrize(("model", "names"), [
    ("minivit", ["blocks.0", "blocks.*.attention.weights"]),
    ("torchvision", ["encoder.layers.*.self_attention.weights"]),
])  # fmt: skip
def test_every_thread_records_what_it_computes(model, names):
    model = model_of(model)

    def recorded(i):
        with torch.no_grad(), record(model, *names, detach=True) as seen:
            model(picture(i))
        return seen

    alone = [recorded(i) for i in range(THREADS)]

    def right(i):
        known = alone[i]
        calls = [recorded(i) for _ in range(CALLS)]
        assert all(seen.keys() == known.keys() for seen in calls)
        return all(seen[name].equal(known[name]) for seen in calls for name in known)

    assert all(in_threads(right))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_thread_that_does_not_record_is_not_recorded():
    model = model_of("minivit")

    def run_elsewhere():
        other = threading.Thread(target=lambda: model(picture(1)))
        other.start()
        other.join()

    with record(model, "blocks.0") as seen:
        model(picture(0))
        mine = seen["blocks.0"]
        run_elsewhere()
        assert seen["blocks.0"] is mine
    said = r"never ran.*\['blocks.0'\].*in this thread"
    with pytest.raises(RuntimeError, match=said), record(model, "blocks.0"):
        run_elsewhere()


def in_turn(*blocks):
    """Enters each block in a thread of its own, in order, then leaves them in the same order."""
    pools = [ThreadPoolExecutor(1) for _ in blocks]
    for pool, block in zip(pools, blocks, strict=True):
        pool.submit(block.__enter__).result()
    for pool, block in zip(pools, blocks, strict=True):
        yield
        pool.submit(block.__exit__, None, None, None).result()
        pool.shutdown()


def test_a_model_stays_in_evaluation_until_the_last_thread_is_done_and_then_comes_back():
    model = nn.Sequential(nn.Dropout(), nn.Linear(2, 2), nn.Dropout().eval())
    for _ in in_turn(evaluating(model), evaluating(model)):
        assert not any(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == [True, True, True, False]


def test_code_is_compiled_again_after_blocks_that_overlap():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def compiles(layer):
        count = len(graphs)
        torch.compile(nn.Sequential(layer), backend=backend)(torch.ones(1, 2))
        return len(graphs) > count

    assert compiles(nn.Tanh())
    for _ in in_turn(uncompiled(), uncompiled()):
        assert not compiles(nn.ReLU())
    assert compiles(nn.ReLU())


class Steps:
    """Waits at each step for its turn, which a draw decides."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    async def __call__(self):
        for _ in range(self.draw.randrange(3)):
            await asyncio.sleep(0)


@pytest.mark.parametrize("name", ["minivit", "torchvision"])
def test_coroutines_that_share_a_thread_record_and_replace_for_themselves_in_any_order(name):
    model = model_of(name)
    block, weights = "blocks.0", "*.weights"
    if name == "torchvision":
        block, weights = "encoder.layers.encoder_layer_0", "encoder.layers.*.weights"

    async def handle(i, step):
        zero = {weights: torch.zeros_like} if i % 3 == 0 else {block: lambda x: x + i}
        with replace(model, zero) if i % 2 else nullcontext():
            await step()
            with record(model, block, weights, detach=True) as seen:
                await step()
                model(picture(i))
                await step()
                with record(model, block, detach=True) as inner:
                    await step()
                    if i % 5 == 0:
                        model(picture(i + 100))
                        await step()
                    model(picture(i))
                await step()
            await step()
        assert inner[block].equal(seen[block])
        return seen

    async def both(i, step):
        if i % 4 == 3:
            with pytest.raises(ZeroDivisionError), record(model, weights):
                await step()
                raise ZeroDivisionError
        return await handle(i, step)

    async def together(seed):
        step = Steps(seed)
        return await asyncio.gather(*(both(i, step) for i in range(6)))

    with torch.no_grad():
        alone = [asyncio.run(both(i, Steps(0))) for i in range(6)]
        for seed in range(25):
            for seen, known in zip(asyncio.run(together(seed)), alone, strict=True):
                close(dict(seen), dict(known), 0)
    assert is_clean(model)


def test_a_block_that_is_left_before_one_inside_it_says_so_and_nothing_stays():
    model, names = model_of("minivit"), ("blocks.0", "*.weights")
    for leave in (0, 1, 2), (1, 0, 2), (0, 2, 1), (1, 2, 0), (2, 0, 1):
        blocks = [record(model, *names), replace(model, {"blocks.1": torch.zeros_like}), record(model, *names)]  # fmt: skip
        for one in blocks:
            one.__enter__()
        model(picture(0))
        entered, wrong = [0, 1, 2], []
        for i in leave:
            if i == entered[-1]:
                blocks[i].__exit__(None, None, None)
            else:
                wrong.append(i)
                with pytest.raises(RuntimeError, match="was entered here to be left first"):
                    blocks[i].__exit__(None, None, None)
            entered.remove(i)
        assert wrong and is_clean(model)

    def suspended():
        with record(model, "blocks.0") as seen:
            yield seen

    generator = suspended()
    next(generator)
    with pytest.raises(RuntimeError, match="left first"), record(model, "blocks.0"):
        model(picture(0))
        next(generator)
    assert is_clean(model)


def test_a_mode_of_torch_that_is_left_later_is_not_taken_for_the_recording():
    model = model_of("minivit")
    recorded, device = record(model, "*.weights"), torch.device("meta")
    recorded.__enter__()
    device.__enter__()
    pytest.raises(RuntimeError, recorded.__exit__, None, None, None).match("no attention weights")
    assert torch.zeros(1).is_meta
    device.__exit__(None, None, None)
    assert not torch.zeros(1).is_meta
    with record(model, "*.weights") as seen:
        model(picture(0))
    assert len(seen) == 2 and is_clean(model)
