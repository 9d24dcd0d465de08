"""How much a function holds in memory, counted tensor by tensor while it runs."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary


class MemoryMeter(TorchDispatchMode):
    """Counts the numbers in the tensors made in a ``with`` block, as if all had the default dtype.

    Views cost nothing, nor do the tensors given. ``largest`` is the size of the largest tensor
    made, inside torch.func too, ``peak`` that of all tensors alive at the worst moment.
    """

    def __init__(self, *given: torch.Tensor):
        super().__init__()
        self.given = {tensor.untyped_storage()._cdata for tensor in given}
        self.alive = WeakIdKeyDictionary()  # storage -> numbers; an entry goes with its storage
        self.largest = self.peak = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.given:
                    self.alive[storage] = storage.nbytes() // torch.get_default_dtype().itemsize
        self.largest = max(self.largest, *self.alive.values(), 0)
        self.peak = max(self.peak, sum(self.alive.values()))
        return result
