"""The errors at the end of a block in which something that was named did not happen."""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from torch import nn

from minivit.recording.attention import AttentionListener
from minivit.recording.names import attention_names, find


def refuse_silence(
    modules: dict[str, nn.Module],
    names: Iterable[str],
    seen: Collection[str],
    listener: AttentionListener,
) -> None:
    """Raises RuntimeError for names of modules that never ran, or showed no attention weights.

    Args:
        modules: All modules by name.
        names: Shell-style, as :func:`~minivit.recording.record` takes them.
        seen: What did happen.
        listener: What listened for attention weights.
    """
    outputs, weights = find(modules, names)
    ran = [name for name in seen if name in outputs]
    silent = [pattern for pattern in names if not any(fnmatchcase(name, pattern) for name in ran)]
    if missing := [name for name in outputs if any(fnmatchcase(name, p) for p in silent)]:
        raise RuntimeError(
            f"these modules never ran inside the block: {missing}; it may not have called the "
            "model in this thread, or a parent may use their parameters without calling them"
        )
    missing = [name for name in weights if name not in seen]
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
