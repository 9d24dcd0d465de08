"""``record``: what chosen modules give during a block of code."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from fnmatch import fnmatchcase
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from minivit.recording.attention import AttentionListener
from minivit.recording.hooks import after, uncompiled
from minivit.recording.names import attention_names, find, runnable


class Kept:
    """What modules gave, by name, and what it takes to notice that it was overwritten since.

    Args:
        detach: Keep copies without gradients.
    """

    def __init__(self, detach: bool) -> None:
        self.seen: dict[str, Any] = {}
        self.detach = detach
        self.closed = False
        self._versions: dict[str, list[tuple[Tensor, int]]] = {}

    def close(self) -> None:
        """Keeps nothing more."""
        self.closed = True

    def keep(self, name: str, output: Any) -> None:
        """Keeps what a module gave; the tensor alone where there is exactly one in it.

        Raises:
            RuntimeError: There is no tensor in it.
        """
        if self.closed:
            return
        # Inference mode does not count changes, and has no gradients to lose: always a copy.
        copy = self.detach or any(t.is_inference() for t in tensors_in(output))
        if copy:
            output = tree_map_only(Tensor, lambda t: t.detach().clone(), output)
        tensors = tensors_in(output)
        if not tensors:
            raise RuntimeError(f"module {name!r} gave no tensor: got {type(output).__name__}")
        self.seen[name] = tensors[0] if len(tensors) == 1 else output
        self._versions[name] = [] if copy else [(t, t._version) for t in tensors]

    def output_of(self, module: nn.Module, name: str) -> AbstractContextManager[None]:
        """Keeps, while it is entered, what ``module`` gives, and calls it ``name``."""
        return after(module, lambda module, args, output: self.keep(name, output))

    def overwritten(self) -> list[str]:
        """Names of tensors that in-place operations have changed since they were kept."""
        return [
            name
            for name, versions in self._versions.items()
            if any(tensor._version != version for tensor, version in versions)
        ]


def tensors_in(output: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists, dictionaries and whatever else is known to pytree."""
    return [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]


@contextmanager
def record(model: nn.Module, *names: str, detach: bool = False) -> Iterator[dict[str, Any]]:
    """Records what modules of a model give while the block runs::

        with minivit.record(model, "blocks.3", "blocks.*.attention.weights") as seen:
            model(images)
        seen["blocks.3"]                    # [batch, tokens, dim]
        seen["blocks.3.attention.weights"]  # [batch, heads, queries, keys], rows sum to 1

    Names are those of ``model.named_modules()``, shell-style: ``*`` stands for anything, dots
    included, so ``blocks.*`` is the blocks and all that is in them, and ``blocks.?`` the first ten
    blocks alone. ``""`` is the model itself. A pattern keeps what runs of the modules that it
    matches, and a part that is gone does not run; a name without wildcards must. With ``.weights``
    behind a module's name they are the attention weights computed inside that module, before
    dropout, whether it calls ``F.scaled_dot_product_attention``, ``nn.MultiheadAttention`` or a
    softmax: ``*.attention`` in minivit and Hugging Face, ``*.attn`` in timm, ``*.self_attention``
    in torchvision. Where heads are mixed behind the softmax, as in CaiT and DeepViT, it is the
    softmax that is recorded, and not the mixture that meets the values.

    What is recorded is the tensor that the model goes on with: gradients flow through it, and
    ``torch.autograd.grad(logits[0, 5], seen["blocks.3.attention.weights"])`` works. A module that
    runs more than once keeps what it gave last. A result that holds exactly one tensor, such as
    ``(tensor, None)``, is recorded as that tensor, any other as it is. Attention weights are in the
    precision in which their softmax was taken: float32 where a fused kernel has half precision.

    Blocks may be nested, and each gets its own. Threads may share a model: a block sees what the
    thread computes that entered it, and no other. Code compiled by ``torch.compile`` runs
    uncompiled, in the whole process, until the block ends. Turn gradient checkpointing off: what it
    computes again in the backward pass is not recorded, and torch refuses the difference.

    Args:
        model: Any module, compiled or not. Its code and its parameters are not touched.
        names: Shell-style names, at least one.
        detach: Record copies without gradients. Default: the tensors themselves.

    Yields:
        A dictionary from names to tensors, in the order in which they are first given.

    Raises:
        TypeError: ``model`` is no module, or has a ``DataParallel`` or ``ScriptModule`` in it; or
            a name is no string.
        ValueError: No names.
        LookupError: A name matches nothing; the message lists near ones.
        RuntimeError: Inside the block, a module gives no tensor, or computes attention twice in one
            call. At its end, none of the modules that a name matches ever ran, one showed no
            attention weights, or in a tensor without one axis each for images and heads, or a
            recorded tensor was overwritten by an in-place operation.
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
    ran = kept.seen.keys() & outputs
    silent = [pattern for pattern in names if not any(fnmatchcase(name, pattern) for name in ran)]
    if missing := [name for name in outputs if any(fnmatchcase(name, p) for p in silent)]:
        raise RuntimeError(
            f"these modules never ran inside the block: {missing}; it may not have called the "
            "model in this thread, or a parent may use their parameters without calling them"
        )
    missing = [name for name in weights if name not in kept.seen]
    if folded := [name for name in missing if name in listener.others]:
        raise RuntimeError(
            f"expected attention weights [batch, heads, queries, keys]: the softmax in {folded} "
            f"has {[list(listener.others[name]) for name in folded]}, in which heads and images "
            "cannot be told apart"
        )
    if missing:
        raise RuntimeError(
            f"no attention weights were computed for {missing}; what looks like attention here: "
            f"{attention_names(modules) or 'nothing'}. One of those that is missing never ran, or "
            "uses a kernel from outside torch: choose the model's eager or sdpa attention"
        )
    if overwritten := kept.overwritten():
        raise RuntimeError(
            f"in-place operations overwrote what was recorded of {overwritten}: "
            "record copies with detach=True"
        )
