"""The logit lens: what the head would predict from the tokens of an earlier block."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from minivit.hooks import after, before
from minivit.recording import tensors_in
from minivit.replacing import replace
from vitlab.calls import logits
from vitlab.instruments.blocks import row_of_blocks
from vitlab.instruments.grids import maps_of
from vitlab.instruments.running import Images, batches, evaluating


@dataclass(frozen=True, eq=False)
class LogitLens:
    """The logits from the tokens before the first block and after every block."""

    names: tuple[str, ...]  # "embedding", then every block's name
    logits: Float64[Tensor, "names batch *tokens classes"]  # tokens where each is read alone


def logit_lens(
    model: nn.Module, images: Images, *, every_token: bool = False, batch_size: int = 64
) -> LogitLens:
    """Applies the layers after the last block to the tokens after each block.

    The logit lens of nostalgebraist (2020), for vision as in Vilas et al. (2023). The tokens
    replace the last block's output, so that final norm, pooling and head are the model's own. The
    last row holds the model's own logits. The model is a classifier with a sequence of blocks from
    tokens ``[batch, tokens, dim]`` to tokens: ViTs and Mixers of minivit, torchvision, timm,
    Hugging Face; ValueError where there is none, or the logits depend on more than its output.

    Args:
        every_token: Read each token alone, as if all tokens were equal to it, instead of the class
            token or the mean.
    """
    first, stream = batches(images, batch_size)
    names = row_of_blocks(model, first)
    columns = []
    for batch in stream:
        with evaluating(model), _states(model, names) as states, maps_of(model) as maps:
            whole = logits(model, batch)
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
                raise ValueError(
                    f"what follows {names[-1]!r} in {type(model).__name__} takes no tokens but its "
                    f"own: it stopped at {list(tokens.shape)}"
                ) from error
        if not every_token and not torch.allclose(rows[-1], whole, rtol=1e-3, atol=1e-4):
            raise ValueError(
                f"what {type(model).__name__} answers does not follow from what {names[-1]!r} gives"
            )
        columns.append(torch.stack(rows).double().cpu())
    return LogitLens(("embedding", *names), torch.cat(columns, 1))


@contextmanager
def _states(model: nn.Module, names: list[str]) -> Iterator[list[Tensor]]:
    """Collects the tokens before the first of these blocks, and after each."""
    states: list[Tensor] = []

    blocks = [model.get_submodule(name) for name in names]
    with ExitStack() as stack:
        keep = states.append
        stack.enter_context(before(blocks[0], lambda _, args, kwargs: keep(tensors_in(args)[0])))
        for block in blocks:
            stack.enter_context(after(block, lambda _, args, output: keep(tensors_in(output)[0])))
        yield states
