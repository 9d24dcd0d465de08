"""``record``: the outputs and the attention of named modules during a block of code."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from minivit.attention import listening
from minivit.hooks import after, block, uncompiled
from minivit.listening import KINDS, AttentionListener, Inside

COMPILED = "_orig_mod"  # where torch.compile keeps the original module
# Modules that are never called themselves.
CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


def part_of(name: str, kind: str) -> str:
    """The name under which what is of this kind in a module's attention is recorded."""
    return f"{name}.{kind}" if name else kind


def weights_of(name: str) -> str:
    """The name under which the attention weights of the module ``name`` are recorded."""
    return part_of(name, "weights")


def runnable(model: nn.Module) -> dict[str, nn.Module]:
    """Every module that can be called, by each of its names; ``""`` is the model itself.

    A compiled model has the names of the original. A model with parts that run where their hooks
    are not called raises TypeError.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected an nn.Module: got {type(model).__name__}")
    model = getattr(model, COMPILED, model)
    modules = dict(model.named_modules(remove_duplicate=False))
    for name, module in modules.items():
        if isinstance(module, nn.DataParallel | torch.jit.ScriptModule):
            kind = f"{type(module).__name__} (module {name!r})"
            raise TypeError(f"cannot look inside {kind}: take the module it was made from")
    return {name: m for name, m in modules.items() if not isinstance(m, CONTAINERS)}


def attention_names(modules: dict[str, nn.Module]) -> list[str]:
    """Attention weights to suggest: those of modules with "att" in their name or class."""
    return [
        weights_of(name)
        for name, module in modules.items()
        if "att" in f"{name.rpartition('.')[2]} {type(module).__name__}".lower()
    ]


def find(
    modules: dict[str, nn.Module], patterns: Iterable[str]
) -> tuple[dict[str, nn.Module], dict[str, Inside]]:
    """Finds the modules whose outputs, and those whose attention, match patterns.

    Patterns are shell-style; ``*`` matches anything, dots included. One that ends in ``.weights``
    or another of ``KINDS`` means attention, unless a module has that name. If a pattern matches
    nothing, LookupError lists similar names.
    """
    outputs: dict[str, nn.Module] = {}
    attention: dict[str, Inside] = {}
    for pattern in patterns:
        hits = {name: m for name, m in modules.items() if fnmatchcase(name, pattern)}
        outputs |= hits
        kind = pattern.rpartition(".")[2]
        if not hits and kind in KINDS:
            hits = {n: m for n, m in modules.items() if fnmatchcase(part_of(n, kind), pattern)}
            for name, module in hits.items():
                inside = attention.setdefault(name, Inside(module))
                inside.kinds.add(kind)
                inside.one_of_many &= wild(pattern)
        if not hits:
            names = attention_names(modules)
            near = get_close_matches(pattern, [*modules, *names], cutoff=0)
            none = ", and nothing here looks like attention" if kind in KINDS and not names else ""
            raise LookupError(f"no module matches {pattern!r}{none}; near names: {near}")
    return outputs, attention


def wild(pattern: str) -> bool:
    return any(sign in pattern for sign in "*?[")


def one(model: nn.Module, name: str) -> nn.Module:
    """The module of this name: LookupError if there is none, ValueError if there are several."""
    modules, _ = find(runnable(model), [name.removeprefix(f"{COMPILED}.")])
    if len(modules) != 1:
        raise ValueError(f"expected the name of one module: got {name!r}, for {list(modules)}")
    return modules.popitem()[1]


def refuse_silence(
    modules: dict[str, nn.Module],
    names: Iterable[str],
    seen: Collection[str],
    listener: AttentionListener,
) -> None:
    """Raises RuntimeError for names of modules that never ran, or showed no attention weights."""
    outputs, attention = find(modules, names)
    ran = [name for name in seen if name in outputs]
    silent = [pattern for pattern in names if not any(fnmatchcase(name, pattern) for name in ran)]
    if missing := [name for name in outputs if any(fnmatchcase(name, p) for p in silent)]:
        raise RuntimeError(
            f"these modules never ran inside the block: {missing}; it may not have called the "
            "model in this thread, or a parent may use their parameters without calling them"
        )
    parts = [part_of(name, kind) for name, one in attention.items() for kind in one.kinds]
    for pattern in names:
        meant = [name for name in parts if fnmatchcase(name, pattern) and name not in outputs]
        missing = [name for name in meant if name not in seen]
        if missing and not (wild(pattern) and len(missing) < len(meant)):
            raise RuntimeError(_why_missing(pattern, missing, modules, listener))


def _why_missing(
    pattern: str, missing: list[str], modules: dict[str, nn.Module], listener: AttentionListener
) -> str:
    kind = pattern.rpartition(".")[2]
    others = {part_of(name, kind): list(shape) for name, shape in listener.others.items()}
    if folded := [name for name in missing if name in others]:
        return (
            f"expected attention weights [batch, heads, queries, keys]: the softmax in {folded} "
            f"has {[others[name] for name in folded]}, in which heads and images cannot be told "
            "apart"
        )
    what = "attention weights" if kind == "weights" else f"{kind} of attention"
    named = f"{pattern!r}" if wild(pattern) else missing
    return (
        f"no {what} were computed for {named}; what looks like attention here: "
        f"{attention_names(modules) or 'nothing'}. It never ran in this thread, or it uses a "
        "kernel from outside torch: choose the model's eager or sdpa attention"
    )


class Kept:
    """Outputs by name, with the versions that show whether they were overwritten since."""

    def __init__(self, detach: bool) -> None:
        self.seen: dict[str, Any] = {}
        self.detach = detach
        self._versions: dict[str, list[tuple[Tensor, int]]] = {}

    def keep(self, name: str, output: Any) -> None:
        """Keeps a module's output, or the single tensor in it; without one, RuntimeError."""
        # Inference mode does not count versions, and has no gradients to lose: always copy.
        copy = self.detach or any(t.is_inference() for t in tensors_in(output))
        if copy:
            output = tree_map_only(Tensor, lambda t: t.detach().clone(), output)
        tensors = tensors_in(output)
        if not tensors:
            raise RuntimeError(f"module {name!r} gave no tensor: got {type(output).__name__}")
        self.seen[name] = tensors[0] if len(tensors) == 1 else output
        self._versions[name] = [] if copy else [(t, t._version) for t in tensors]

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
    """Records the outputs and the attention of a model's modules while the block runs::

        with minivit.record(model, "blocks.3", "*.weights") as seen:
            model(images)
        seen["blocks.3"]                    # [batch, tokens, dim]
        seen["blocks.3.attention.weights"]  # [batch, heads, queries, keys], rows sum to 1

    Names are those of ``model.named_modules()``, shell-style: ``*`` matches anything, dots
    included; ``""`` is the model itself. Of the modules that a pattern matches, those that run are
    recorded; a name without wildcards must run.

    A module's name followed by ``.weights`` means the attention weights computed inside it, before
    dropout, by ``F.scaled_dot_product_attention``, ``nn.MultiheadAttention`` or a softmax. Of the
    modules that a pattern matches, the innermost have them: ``"*.weights"`` records all attention
    of any library's model. Where heads are mixed after the softmax, as in CaiT and DeepViT, the
    softmax is recorded, not the mixture. Likewise ``.queries``, ``.keys`` and ``.values``, each
    ``[batch, heads, tokens, width]``, as they enter their products; ``.scores``, of which the
    softmax is taken; and ``.heads``, what each head gives, before heads are joined.

    The recorded tensor is the one the model continues with: gradients flow through it, and
    ``torch.autograd.grad(logits[0, 5], seen["blocks.3.attention.weights"])`` works. If a module
    runs more than once, the last output is kept. An output with exactly one tensor, such as
    ``(tensor, None)``, is recorded as that tensor. Attention weights have the precision of their
    softmax: float32 where a fused kernel computes in half precision. ``torch.save(seen, file)``
    keeps what was recorded with ``detach=True``; ``replace`` takes it back.

    Blocks may be nested, and must be left in the reverse order. A block records only what its own
    thread computes, and of coroutines its own task. Code compiled by ``torch.compile`` runs
    uncompiled, in the whole process, until the block ends. Turn gradient checkpointing off: what it
    recomputes in the backward pass is not recorded, and torch refuses the difference.

    Args:
        model: Any module, compiled or not. Its code and its parameters are not touched.
        names: Shell-style names, at least one.
        detach: Record copies without gradients.

    Raises:
        TypeError: The model contains a ``DataParallel`` or ``ScriptModule``.
        LookupError: A name matches nothing; the message lists similar ones.
        RuntimeError: A module returns no tensor, or computes attention twice in one call; at the
            end of the block, nothing that a name matches ran, no attention was seen with an axis
            each for images and heads, a recorded tensor was overwritten in place, or a block inside
            this one has not ended.
    """
    modules = runnable(model)
    if not names:
        raise ValueError("name what to record, for example '*.weights'")
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"names are strings, each an argument of its own: got {names!r}")
    if not isinstance(detach, bool):
        raise TypeError(f"expected True or False as detach: got {detach!r}")
    outputs, attention = find(modules, names)
    kept = Kept(detach)
    listener = AttentionListener(kept.keep)
    with ExitStack() as stack:
        stack.enter_context(block())
        stack.enter_context(uncompiled())
        for name, module in outputs.items():
            stack.enter_context(after(module, lambda *call, name=name: kept.keep(name, call[-1])))
        for name, at in attention.items():
            stack.enter_context(listener.inside(name, at))
        if attention:  # else torch's own kernels and fast paths run
            stack.enter_context(listening(listener))
        yield kept.seen
    refuse_silence(modules, names, kept.seen.keys(), listener)
    if overwritten := kept.overwritten():
        raise RuntimeError(f"{overwritten} were overwritten in place: record with detach=True")
