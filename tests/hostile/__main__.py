"""Runs the campaign: what was refused clearly or unclearly, accepted, wrong, or slow."""

import argparse
import multiprocessing
import os
import resource
import signal
import sys
import warnings
from collections import Counter, defaultdict
from contextlib import suppress
from math import isnan
from pathlib import Path
from random import Random
from typing import Any, get_type_hints

import torch
from torch.nn.modules import module as torch_module

from tests.hostile import calls as valid
from tests.hostile.judging import Verdict, finite, fits, leaves, refusal, same
from tests.hostile.values import NOTHING, hostile

SECONDS, MEMORY = 25, 3 * 2**30
# Their numbers are drawn for the shape and dtype alone, or as large as a model makes them.
FREE = {"noise", "random_like", "between_patches", "ViT()", "Mixer()", "norms", "invert_residual"}
Case = tuple[valid.Call, str, str, int]  # a function, the parameter, the bad value's name, a seed


def cases(number: int, seed: int) -> list[Case]:
    """As many by lot, each once before any comes again with other random numbers."""
    random, drawn = Random(seed), list[Case]()
    known = [
        (call, parameter, name)
        for call in valid.calls()
        for parameter, value in {**call.arguments, **call.spare}.items()
        for name, bad, _ in hostile(value, Random(0))
        if parameter != "names" or isinstance(bad, tuple | list)
    ]
    while len(drawn) < number:
        drawn += [(*case, random.getrandbits(32)) for case in random.sample(known, len(known))]
    return drawn[:number]


def state() -> list[Any]:
    """What no call may change: the models' weights, modes and hooks, the arguments, torch's settings."""
    models = [valid.vit, valid.other, valid.double]
    marks: list[Any] = [torch.is_grad_enabled(), torch.get_default_dtype()]
    marks += [torch._C._len_torch_function_stack(), len(torch_module._global_forward_hooks)]
    for m in (part for model in models for part in model.modules()):
        hooks = len(m._forward_hooks), len(m._forward_pre_hooks)
        marks += [m.training, "forward" in vars(m), *hooks]
    weights = (tensor for model in models for tensor in model.state_dict().values())
    tensors = *weights, valid.images, valid.labels, valid.tokens, valid.flat
    return marks + [tensor.detach().numpy().tobytes() for tensor in tensors]


def judge(case: Case, known: dict[str, Any]) -> Verdict:
    """Makes one call, and says what came of it."""
    call, parameter, name, seed = case
    value = {**call.arguments, **call.spare}[parameter]
    bad, twin = next((b, t) for n, b, t in hostile(value, Random(seed)) if n == name)
    before = state()
    huge = "NaN" in name or "1e30" in name  # the numbers in it, or that come of it
    verdict = tried(call, parameter, bad, twin, known.get(call.name), huge)
    return verdict if state() == before else ("wrong", "changes what is shared", verdict[2])


def tried(call: valid.Call, parameter: str, bad: Any, twin: Any, usual: Any, huge: bool) -> Verdict:
    shown = repr(bad)[:60].replace("\n", " ")
    makes = isinstance(call.function, type)
    types = get_type_hints(call.function.__init__ if makes else call.function, include_extras=True)
    free, kind = call.name in FREE, types.get(parameter, Any)
    try:
        result = made(call, {parameter: bad})
    except Exception as error:
        return refusal(error)
    if not makes and not fits(result, types.get("return", Any)):
        return "wrong", "gives what is not documented", shown
    if twin is not NOTHING and not free:
        try:
            right = made(call, {parameter: twin})
        except Exception as error:
            return "accepted", "what means the same is refused", f"{shown}: {error}"
        return ("accepted" if same(result, right) else "wrong"), "beside what means the same", shown
    if parameter != "names" and not fits(bad, kind) and not same(result, usual):
        return "wrong", f"accepts no {getattr(kind, '__name__', kind)}", shown
    if free:
        return "accepted", "", shown
    if finite(bad) and not huge and not finite(result) and finite(usual):
        return "wrong", "gives what is not finite", shown
    computes = call.name not in ("branches", "freeze")  # but give or change what will
    lost = computes and finite(result) and any(isinstance(p, torch.Tensor) for _, p in leaves(bad))
    if not finite(bad) and (lost or (isinstance(bad, float) and isnan(bad))):
        return "wrong", "takes no notice of what is not finite", shown
    return "accepted", "", shown


def made(call: valid.Call, changes: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    valid.generator.manual_seed(0)
    return call(**changes)


def work(todo: list[Case], known: dict[str, Any], pipe: Any) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    warnings.simplefilter("ignore")
    os.chdir(valid.FILES)  # where calls with bad paths may write
    for case in todo:
        signal.alarm(SECONDS)  # which ends the process
        pipe.send(judge(case, known))


def run(drawn: list[Case]) -> list[Verdict]:
    """The verdicts, from processes that each go on after the case in which the last one ended."""
    known = {call.name: made(call, {}) for call in valid.calls()}
    fork = multiprocessing.get_context("fork")
    done: list[Verdict] = []
    while len(done) < len(drawn):
        here, there = fork.Pipe(duplex=False)
        worker = fork.Process(target=work, args=(drawn[len(done) :], known, there))
        worker.start()
        there.close()
        with suppress(EOFError):
            while True:
                done.append(here.recv())
        worker.join()
        if len(done) < len(drawn):
            slow = worker.exitcode == -signal.SIGALRM
            kind = ("slow", f"more than {SECONDS} s") if slow else ("wrong", "the process died")
            done.append((*kind, ""))
    return done


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    drawn = cases(options.cases, options.seed)
    counts: Counter[str] = Counter()
    kinds: dict[tuple[str, str], list[tuple[Case, str]]] = defaultdict(list)
    for case, (verdict, kind, said) in zip(drawn, run(drawn), strict=True):
        counts[verdict] += 1
        kinds[verdict, kind].append((case, said))
    for (verdict, what), those in sorted(kinds.items(), key=lambda row: -len(row[1])):
        if verdict in ("unclear", "wrong", "slow"):
            where = Counter(call.name for (call, *_), _ in those).most_common(9)
            (call, parameter, name, _), said = those[0]
            print(f"\n{len(those)} {verdict}: {what}")
            print(f"    {', '.join(f'{function} {count}' for function, count in where)}")
            print(f"    {call.name}({parameter}={name}): {said[:200]}")
    share = counts["unclear"] / len(drawn)
    print(f"\n{', '.join(f'{name} {count}' for name, count in counts.items())}")
    return int(share > 0.05 or counts["wrong"] > 0 or counts["slow"] > 0)


if __name__ == "__main__":
    sys.exit(main())
