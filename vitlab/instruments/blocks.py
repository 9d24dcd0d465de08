"""The blocks of a model from any library, and what its head would predict after each of them."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from minivit.hooks import after, before
from minivit.recording import record, runnable, tensors_in
from minivit.replacing import replace
from vitlab.calls import expect, logits
from vitlab.instruments.grids import maps_of
from vitlab.instruments.running import Images, batches, evaluating


def row_of_blocks(model: nn.Module, images: Tensor) -> list[str]:
    """Names the blocks: the longest outermost sequence of modules from tokens to tokens."""
    ran: list[str] = []
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

            stack.enter_context(after(module, keep))
        model(images[:1])
    outer = [name for name in ran if not any(name.startswith(f"{other}.") for other in ran)]
    rows: list[list[str]] = []
    for name in outer:
        previous = rows[-1][-1] if rows else ""
        alike = name.rpartition(".")[0] == previous.rpartition(".")[0]
        if alike and torch.equal(ends[previous][1], ends[name][0]):
            rows[-1].append(name)
        elif len(ends[name][0]) == 1:  # of one image
            rows.append([name])
    longest = max(rows, key=len, default=[])
    clear = longest and not len(longest) < 2 <= len(rows)  # of several of length one, none is it
    what = f"a {type(model).__name__} with blocks, each of which reads what the one before gave"
    expect(clear, what, "no row of blocks from tokens to tokens, [batch, tokens, dim]")
    return longest


@dataclass(frozen=True, eq=False)
class LogitLens:
    """The logits from the tokens before the first block and after every block."""

    names: tuple[str, ...]  # "embedding", then every block's name
    logits: Float64[Tensor, "names batch *tokens classes"]  # tokens where each is read alone


def logit_lens(
    model: nn.Module, images: Images, *, every_token: bool = False, batch_size: int = 64
) -> LogitLens:
    """Applies the layers after the last block to the tokens after each: nostalgebraist (2020).

    The tokens replace the last block's output, so that final norm, pooling and head are the model's
    own; Vilas et al. (2023) did so for vision. ``every_token`` reads each token alone, as if all
    were equal to it. ValueError where the logits depend on more than the last block's output.
    """
    first, stream = batches(images, batch_size)
    names = row_of_blocks(model, first)
    states: list[Tensor] = []  # the tokens before the first block, and after each

    def keep(module: nn.Module, args: Any, kwargs: Any) -> None:
        states[:] = tensors_in(args)[:1]

    columns = []
    for batch in stream:
        start = before(model.get_submodule(names[0]), keep)
        with evaluating(model), start, record(model, *names) as seen, maps_of(model) as maps:
            whole = logits(model, batch)
        states += [tensors_in(seen[name])[0] for name in names]
        rows = []
        for state in states:
            tokens = state  # [batch, tokens, dim]
            if every_token:  # each becomes an image of equal tokens
                patches = maps[-1][0] * maps[-1][1] if maps else 1
                alike = state.shape[1] - patches + 1  # one patch, and the tokens that are no patch
                tokens = state.flatten(0, 1)[:, None].expand(-1, max(alike, 1), -1)
            try:
                with evaluating(model), replace(model, {names[-1]: lambda _, new=tokens: new}):
                    answers = logits(model, batch[:1])
                rows.append(answers.unflatten(0, state.shape[: 1 + every_token]))
            except RuntimeError as error:
                after = f"what follows {names[-1]!r} in {type(model).__name__} takes no tokens but"
                raise ValueError(f"{after} its own: it stopped at {list(tokens.shape)}") from error
        follows = every_token or torch.allclose(rows[-1], whole, rtol=1e-3, atol=1e-4)
        what = f"logits of {type(model).__name__} that follow from what {names[-1]!r} gives"
        expect(follows, what, "others")
        columns.append(torch.stack(rows).double().cpu())
    return LogitLens(("embedding", *names), torch.cat(columns, 1))
