"""The blocks of a model from any library, by what their modules read and give."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from minivit.hooks import after
from minivit.recording import runnable, tensors_in
from vitlab.instruments.running import evaluating


def row_of_blocks(model: nn.Module, images: Tensor) -> list[str]:
    """Names the blocks: the longest outermost sequence of modules from tokens to tokens.

    Each reads the output of the one before, which has an entry for every image. ValueError where
    there is none, or where it has more blocks beside it that change the tokens' number or width,
    as in hierarchical models whose stages stand in one list.
    """
    ran: list[str] = []
    others: list[str] = []
    ends: dict[str, tuple[Tensor, Tensor]] = {}  # a module's input and output
    with evaluating(model), ExitStack() as stack:
        for name, module in runnable(model).items():
            parent = model.get_submodule(name.rpartition(".")[0])
            if not name or not isinstance(parent, nn.ModuleList | nn.Sequential):
                continue

            def keep(module: nn.Module, args: Any, output: Any, name: str = name) -> None:
                read, given = (tensors_in(x) for x in (args, output))
                shapes = [t.shape for t in given]
                if [t.shape for t in read[:1]] == shapes and len(shapes[0]) == 3:
                    ran.append(name)
                    ends[name] = read[0].clone(), given[0].clone()
                else:
                    others.append(name)

            stack.enter_context(after(module, keep))
        model(images[:1])
    outer = [name for name in ran if not any(name.startswith(f"{other}.") for other in ran)]
    rows: list[list[str]] = []
    for name in outer:
        last = rows[-1][-1] if rows else ""
        alike = name.rpartition(".")[0] == last.rpartition(".")[0]
        if alike and torch.equal(ends[last][1], ends[name][0]):
            rows[-1].append(name)
        elif len(ends[name][0]) == 1:  # of one image
            rows.append([name])
    longest = max(rows, key=len, default=[])
    if not longest or len(longest) < 2 <= len(rows):  # several of length one: none is the blocks
        raise ValueError(
            f"{type(model).__name__} has no row of blocks from tokens to tokens, "
            "[batch, tokens, dim], each reading what the one before gave"
        )
    row, _, _ = longest[-1].rpartition(".")
    kind = type(model.get_submodule(longest[-1]))

    def beside(names: list[str]) -> list[str]:
        """Those in the longest row's list and of its kind, but not in the row."""
        there = [name for name in names if name.rpartition(".")[0] == row and name not in longest]
        return [name for name in there if type(model.get_submodule(name)) is kind]

    if (changing := beside(others)) and beside(outer):  # a head alone is no other stage
        raise ValueError(
            f"expected blocks that keep the number and width of tokens: {changing[0]!r} in "
            f"{type(model).__name__} does not"
        )
    return longest
