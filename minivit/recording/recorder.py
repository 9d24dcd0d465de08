"""``record``: the outputs and attention weights of named modules during a block of code."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from minivit.recording.attention import AttentionListener
from minivit.recording.hooks import after, uncompiled
from minivit.recording.names import find, runnable
from minivit.recording.silence import refuse_silence


class Kept:
    """Outputs by name, with the versions that show whether they were overwritten since."""

    def __init__(self, detach: bool) -> None:
        self.seen: dict[str, Any] = {}
        self.detach = detach
        self.closed = False
        self._versions: dict[str, list[tuple[Tensor, int]]] = {}

    def close(self) -> None:
        """Stops keeping."""
        self.closed = True

    def keep(self, name: str, output: Any) -> None:
        """Keeps a module's output, or the single tensor in it; without one, RuntimeError."""
        if self.closed:
            return
        # Inference mode does not count versions, and has no gradients to lose: always copy.
        copy = self.detach or any(t.is_inference() for t in tensors_in(output))
        if copy:
            output = tree_map_only(Tensor, lambda t: t.detach().clone(), output)
        tensors = tensors_in(output)
        if not tensors:
            raise RuntimeError(f"module {name!r} gave no tensor: got {type(output).__name__}")
        self.seen[name] = tensors[0] if len(tensors) == 1 else output
        self._versions[name] = [] if copy else [(t, t._version) for t in tensors]

    def output_of(self, module: nn.Module, name: str) -> AbstractContextManager[None]:
        """Keeps the output of ``module`` under ``name``, while it is entered."""
        return after(module, lambda module, args, output: self.keep(name, output))

    def overwritten(self) -> list[str]:
        """Names of tensors that in-place operations have changed since they were kept."""
        return [
            name
            for name, versions in self._versions.items()
            if any(tensor._version != version for tensor, version in versions)
        ]


def tensors_in(output: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists, dictionaries and anything else that pytree knows."""
    return [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]


@contextmanager
def record(model: nn.Module, *names: str, detach: bool = False) -> Iterator[dict[str, Any]]:
    """Records the outputs and attention weights of a model's modules while the block runs::

        with minivit.record(model, "blocks.3", "blocks.*.attention.weights") as seen:
            model(images)
        seen["blocks.3"]                    # [batch, tokens, dim]
        seen["blocks.3.attention.weights"]  # [batch, heads, queries, keys], rows sum to 1

    Names are those of ``model.named_modules()``, shell-style: ``*`` matches anything, dots
    included, so ``blocks.*`` is the blocks and everything in them, and ``blocks.?`` the first ten
    blocks. ``""`` is the model itself. Of the modules that a pattern matches, those that run are
    recorded; a name without wildcards must run. A module's name followed by ``.weights`` means the
    attention weights computed inside it, before dropout, by ``F.scaled_dot_product_attention``,
    ``nn.MultiheadAttention`` or a softmax: ``*.attention`` in minivit and Hugging Face, ``*.attn``
    in timm, ``*.self_attention`` in torchvision. Where heads are mixed after the softmax, as in
    CaiT and DeepViT, the softmax is recorded, not the mixture.

    The recorded tensor is the one the model continues with: gradients flow through it, and
    ``torch.autograd.grad(logits[0, 5], seen["blocks.3.attention.weights"])`` works. If a module
    runs more than once, the last output is kept. An output with exactly one tensor, such as
    ``(tensor, None)``, is recorded as that tensor. Attention weights have the precision of their
    softmax: float32 where a fused kernel computes in half precision.

    Blocks may be nested. A block records only what its own thread computes. Code compiled by
    ``torch.compile`` runs uncompiled, in the whole process, until the block ends. Turn gradient
    checkpointing off: what it recomputes in the backward pass is not recorded, and torch refuses
    the difference.

    Args:
        model: Any module, compiled or not. Its code and its parameters are not touched.
        names: Shell-style names, at least one.
        detach: Record copies without gradients.

    Raises:
        TypeError: The model contains a ``DataParallel`` or ``ScriptModule``.
        LookupError: A name matches nothing; the message lists similar ones.
        RuntimeError: A module returns no tensor, or computes attention twice in one call; at the
            end of the block, nothing that a name matches ran, a module showed no attention weights
            with an axis each for images and heads, or a recorded tensor was overwritten in place.
    """
    modules = runnable(model)
    if not names:
        raise ValueError("name what to record, for example 'blocks.*.attention.weights'")
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"names are strings, each an argument of its own: got {names!r}")
    outputs, weights = find(modules, names)
    kept = Kept(detach)
    listener = AttentionListener(kept.keep)
    with ExitStack() as stack:
        stack.callback(kept.close)
        stack.enter_context(uncompiled())
        for name, module in outputs.items():
            stack.enter_context(kept.output_of(module, name))
        for name, module in weights.items():
            stack.enter_context(listener.inside(module, name))
        if weights:  # else torch's own kernels and fast paths run
            stack.enter_context(listener)
        yield kept.seen
    refuse_silence(modules, names, kept.seen.keys(), listener)
    if overwritten := kept.overwritten():
        raise RuntimeError(
            f"in-place operations overwrote what was recorded of {overwritten}: "
            "record copies with detach=True"
        )
