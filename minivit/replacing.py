"""``replace``: other outputs and attention for named modules during a block of code."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from minivit.attention import listening
from minivit.hooks import after, block, uncompiled
from minivit.listening import AttentionListener
from minivit.recording import find, part_of, refuse_silence, runnable, tensors_in


@contextmanager
def replace(model: nn.Module, values: Mapping[str, Any]) -> Iterator[None]:
    """Replaces the outputs and the attention of a model's modules while the block runs::

        with minivit.record(model, "blocks.2") as seen:
            model(one)
        with minivit.replace(model, {"blocks.2": seen["blocks.2"]}):
            model(other)  # from here on as for the one: activation patching
        with minivit.replace(model, {"blocks.*.mlp": torch.zeros_like}):
            model(other)  # no MLP adds anything

    It is the twin of ``record``: names are the same, with ``.weights`` for attention weights, and
    what is recorded under a name is what can be given for it. Activation patching is that of
    Vig et al. (2020) and Meng et al. (2022).

    A tensor has the shape of the output, or is a batch of one, the same for every image; it is
    cast to the output's type and device, and gradients flow through it. A function gets the output,
    as it is recorded, and its result is passed on, whatever its shape. Of an output with exactly
    one tensor, such as ``(tensor, None)``, the tensor is replaced; of one with more, all are: give
    a structure like it.

    Where several names match a module, or blocks are nested, each sees what the one before left, so
    that the last and innermost decides. ``record`` sees what was put in, inside or outside of this
    block. Threads, compiled models and checkpoints are as for ``record``.

    Args:
        model: Any module, compiled or not. Its code and its parameters are not touched.
        values: Tensors or functions by shell-style name, at least one.

    Raises:
        TypeError: As for ``record``; or there are more or fewer tensors than in the output.
        ValueError: A tensor has another shape than the output.
        LookupError, RuntimeError: As for ``record``.
    """
    modules = runnable(model)
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise TypeError(f"expected {{'blocks.2': tokens}}: got {type(values).__name__} {values!r}")
    if not values:
        raise ValueError("name what to replace, for example {'blocks.2': tokens}")
    seen: set[str] = set()
    parts: dict[str, list[Any]] = {}  # what is put into attention, by name

    def put_part(name: str, tensor: Tensor) -> Tensor:
        for value in parts[name]:
            tensor = put(name, tensor, value)
        seen.add(name)
        return tensor

    listener = AttentionListener(put_part, watches=False)
    _, attention = find(modules, values)
    with ExitStack() as stack:
        stack.enter_context(block())
        stack.enter_context(uncompiled())
        for pattern, value in values.items():
            outputs, inside = find(modules, [pattern])
            for name, kind in [(name, kind) for name, at in inside.items() for kind in at.kinds]:
                parts.setdefault(part_of(name, kind), []).append(value)
            for module, name in {module: name for name, module in outputs.items()}.items():

                def put_output(
                    module: nn.Module, args: Any, output: Any, name: str = name, value: Any = value
                ) -> Any:
                    seen.add(name)
                    return put(name, output, value)

                stack.enter_context(after(module, put_output, changes=True))
        for at, name in {at.module: (at, name) for name, at in attention.items()}.values():
            stack.enter_context(listener.inside(name, at))
        if attention:  # else torch's own kernels and fast paths run
            stack.enter_context(listening(listener))
        yield
    refuse_silence(modules, values, seen, listener)


def put(name: str, output: Any, value: Any) -> Any:
    """A module's output, with this value or what a function makes of it in place of its tensors."""
    old = tensors_in(output)
    given = value(old[0] if len(old) == 1 else output) if callable(value) else value
    new = tensors_in(given)
    if not old or len(new) != len(old):
        expected = f"for {name!r} as many tensors as it gives, {len(old)}"
        got = f"{len(new)}, in {type(given).__name__}{' from the function' * callable(value)}"
        raise TypeError(f"expected {expected}: got {got}")
    if not callable(value):
        new = [_fitted(name, one, other) for one, other in zip(new, old, strict=True)]
    rest = iter(new)
    return tree_map_only(Tensor, lambda _: next(rest), output)


def _fitted(name: str, given: Tensor, old: Tensor) -> Tensor:
    """A copy with the shape, type and device of the old, which the model may change in place."""
    if given.shape not in (old.shape, (1, *old.shape[1:])):
        expected = f"for {name!r} a tensor {list(old.shape)}, or a batch of one for every image"
        raise ValueError(f"expected {expected}: got {list(given.shape)}")
    return given.to(old).expand(old.shape).clone()
