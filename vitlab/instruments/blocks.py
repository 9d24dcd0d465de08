"""A model's blocks: what its head would predict after each, and norms of tokens that stand out."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float64
from torch import Tensor, nn

from minivit.hooks import after, before
from minivit.recording import record, runnable, tensors_in
from minivit.replacing import replace
from vitlab.calls import expect, logits
from vitlab.instruments.grids import Grid, maps_of
from vitlab.instruments.representations import Places, collected
from vitlab.instruments.running import Images, batches, entered, evaluating


def row_of_blocks(model: nn.Module, images: Tensor) -> list[str]:
    """Names the blocks: the longest outermost sequence of modules from tokens to tokens."""
    ran: list[str] = []
    ends: dict[str, tuple[Tensor, Tensor]] = {}  # a module's input and output

    def keep(name: str, module: nn.Module, args: Any, output: Any) -> None:
        read, given = (tensors_in(x) for x in (args, output))
        shapes = [t.shape for t in given]
        if [t.shape for t in read[:1]] == shapes and len(shapes[0]) == 3:
            ran.append(name)
            ends[name] = read[0].clone(), given[0].clone()

    def listed(name: str) -> bool:
        row = model.get_submodule(name.rpartition(".")[0])
        return bool(name) and isinstance(row, nn.ModuleList | nn.Sequential)

    modules = runnable(model).items()
    hooks = (after(module, partial(keep, name)) for name, module in modules if listed(name))
    with evaluating(model), entered(hooks):
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


@dataclass(frozen=True, eq=False)
class TokenNorms:
    """Euclidean norms of the tokens that layers give."""

    names: tuple[str, ...]  # of the layers, in the order they run
    patches: Float64[Tensor, "names batch rows columns"]
    extra: Float64[Tensor, "names batch extra"]  # class token, registers
    factor = 3  # how many medians make an outlier

    @property
    def ratio(self) -> Float64[Tensor, "names batch rows columns"]:
        """Norms of patches over the layer's median, of the patches of all images."""
        return self.patches / self.patches.flatten(1).median(1).values[:, None, None, None]

    @property
    def outliers(self) -> Bool[Tensor, "names batch rows columns"]:
        """Patches whose norm is more than ``factor`` medians."""
        return self.ratio > self.factor

    @property
    def fraction(self) -> Float64[Tensor, "names"]:
        """Of outliers among the patches, 0 throughout in a model without high-norm tokens."""
        return self.outliers.double().mean((1, 2, 3))

    @property
    def largest(self) -> Float64[Tensor, "names"]:
        """How far the largest stands out in each layer, as a ratio."""
        return self.ratio.amax((1, 2, 3))

    @property
    def places(self) -> Float64[Tensor, "names rows columns"]:
        """In how many of the images, as a fraction, the patch at each position is an outlier."""
        return self.outliers.double().mean(1)

    @property
    def first(self) -> str | None:
        """The first layer with an outlier, if there is one."""
        return next((n for n, x in zip(self.names, self.outliers, strict=True) if x.any()), None)


def token_norms(
    model: nn.Module, images: Images, *, grid: Grid | None = None, batch_size: int = 16
) -> TokenNorms:
    """Measures the norm of every token after every block, and which patches stand out by theirs.

    Darcet et al. (2024) find in large models a few patches, about 2 %, with roughly ten times the
    norm of the others. Here it is more than 3 times the median of all patches at that depth, midway
    between 1 and 10 on a logarithmic scale.
    """
    first, stream = batches(images, batch_size)
    names = tuple(row_of_blocks(model, first))
    places = Places(model, first, grid)
    norms = collected(model, stream, names, lambda x: x.double().norm(dim=-1), batch_size)
    sides = zip(*(places.split(x[..., None]) for x in norms.values()), strict=True)
    extra, patches = (torch.stack(side)[..., 0] for side in sides)
    return TokenNorms(names, patches, extra)
