"""The loss of a classifier as a function of its weights, and products with its curvature."""

import copy
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from minivit.recording import COMPILED
from vitlab.boundary import checked
from vitlab.calls import logits
from vitlab.instruments.running import Classes, Images, batches, evaluating, with_classes
from vitlab.krylov.products import Operator, hessian, linearise, plain_attention

Batch = tuple[Tensor, Tensor]  # images and classes


class WeightLoss:
    """Mean cross-entropy of a classifier on some images, as a function of some of its weights.

    The weights are one vector ``[1, n]``, a batch of one as everywhere in :mod:`vitlab.krylov`;
    ``point`` holds the model's own. The model is copied, and runs in evaluation mode.

    The graph of a single batch is kept from product to product, several are evaluated anew, in the
    memory of one. ``parameters`` are shell-style patterns of names, ``"blocks.0.*"``, by default
    all; with ``batch_statistics`` BatchNorm uses those of each batch, as functions of the weights.
    """

    @checked
    def __init__(
        self,
        model: nn.Module,
        images: Images,
        classes: Classes,
        parameters: str | Sequence[str] | None = None,
        *,
        label_smoothing: float = 0.0,
        batch_statistics: bool = False,
        batch_size: int = 256,
    ) -> None:
        model = copy.deepcopy(getattr(model, COMPILED, model)).eval().requires_grad_(False)
        self.model, self.smoothing = model, label_smoothing
        if batch_statistics:
            for module in model.modules():
                if isinstance(module, _BatchNorm):  # without running ones torch takes the batch's
                    module.running_mean = module.running_var = None
        self.parameters = _matching(model, parameters)
        flat = [p.reshape(-1) for p in self.parameters.values()]
        self.point: Float[Tensor, "1 n"] = torch.cat(flat)[None]
        self.batches: list[Batch] = []
        with evaluating(model):
            for batch, class_of in with_classes(batches(images, batch_size)[1], classes):
                labels = class_of(logits(model, batch))
                self.batches += zip(batch.split(batch_size), labels.split(batch_size), strict=True)
        self.count = sum(len(x) for x, _ in self.batches)  # images

    def __call__(self, w: Float[Tensor, "1 n"]) -> Float[Tensor, "1"]:
        """The loss for any weights, without a gradient."""
        with torch.no_grad(), plain_attention():
            losses = [self._share(batch, w) for batch in self.batches]
        return torch.stack(losses).sum(0)

    def hessian(self) -> Operator:
        """Products with the Hessian ``H`` at the model's weights: ``[1, n] -> [1, n]``."""
        return self._summed(lambda batch: hessian(partial(self._share, batch), self.point))

    def gauss_newton(self) -> Operator:
        """Products with the generalised Gauss-Newton matrix, after Schraudolph (2002)."""
        return self._summed(self._gauss_newton)

    def split(self, w: Float[Tensor, "1 n"]) -> dict[str, Tensor]:
        """The vector as the model's parameters, by name."""
        sizes = [p.numel() for p in self.parameters.values()]
        parts = zip(self.parameters.items(), w[0].split(sizes), strict=True)
        return {name: part.view_as(like) for (name, like), part in parts}

    def _logits(self, images: Tensor, w: Tensor) -> Tensor:
        return logits(partial(functional_call, self.model, self.split(w)), images)  # type: ignore

    def _share(self, batch: Batch, w: Tensor) -> Tensor:
        """What a batch adds to the loss, ``[1]``."""
        images, labels = batch
        answers = self._logits(images, w)
        total = F.cross_entropy(answers, labels, reduction="sum", label_smoothing=self.smoothing)
        return total[None] / self.count

    def _gauss_newton(self, batch: Batch) -> Operator:
        at = linearise(lambda w: self._logits(batch[0], w)[None], self.point)
        p = at.value.softmax(-1)  # [1, batch, classes]

        def product(v: Tensor) -> Tensor:
            u = p * at.push(v)
            return at.pull(u - p * u.sum(-1, keepdim=True)) / self.count

        return product

    def _summed(self, product_of: Callable[[Batch], Operator]) -> Operator:
        """The sum over batches."""
        kept = [product_of(batch) for batch in self.batches] if len(self.batches) == 1 else None

        def product(v: Tensor) -> Tensor:
            parts = (part(v) for part in kept or map(product_of, self.batches))
            return torch.stack(list(parts)).sum(0)

        return product


def _matching(model: nn.Module, patterns: str | Sequence[str] | None) -> dict[str, Tensor]:
    named = {name: p.detach() for name, p in model.named_parameters()}
    wanted = [patterns] if isinstance(patterns, str) else list(patterns or ["*"])
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in named):
            raise LookupError(f"no parameter matches {pattern!r}; there are {list(named)[:8]} ...")
    matching = {n: p for n, p in named.items() if any(fnmatchcase(n, w) for w in wanted)}
    kinds = {p.dtype for p in matching.values()}
    if kinds not in ({torch.float32}, {torch.float64}):
        got = sorted(map(str, kinds))
        raise TypeError(f"expected weights all in float32, or all in float64: got {got}")
    return matching
