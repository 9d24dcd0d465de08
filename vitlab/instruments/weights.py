"""The loss of a classifier as a function of its weights, and products with its curvature."""

import copy
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.func import functional_call, grad
from torch.nn.modules.batchnorm import _BatchNorm

from minivit.recording import COMPILED
from vitlab.calls import logits
from vitlab.instruments.running import Images, batches, chosen, with_classes
from vitlab.krylov import Operator, hessian, linearise, plain_attention


class WeightLoss:
    """Mean cross-entropy of a classifier on some images, as a function of some of its weights.

    The weights are one vector ``[1, n]``, a batch of one as everywhere in :mod:`vitlab.krylov`;
    ``point`` holds the model's own, and ``value`` the loss there. The model is any classifier, of
    minivit, torchvision, timm or Hugging Face; it is copied, and runs in evaluation mode: no
    dropout. Attention is computed by the unfused kernel, which alone has a second derivative on a
    CPU.

    Args:
        images: One batch, or batches. They are cut into batches of ``batch_size``. The graph of a
            single batch is kept from product to product; several are evaluated anew for each, in
            the memory of one.
        classes: The true class of each image.
        parameters: Shell-style patterns of names, as in ``model.named_parameters()``, one or
            several: ``"blocks.0.*"``. Default: all parameters.
        weight_decay: Adds ``weight_decay / 2`` times the squared length of the vector to the loss,
            and so ``weight_decay`` to each eigenvalue of the Hessian. AdamW's decay, which is
            decoupled from the loss, is no such term.
        label_smoothing: Fraction of the target spread evenly over the classes.
        batch_statistics: What BatchNorm divides by. By default, as in evaluation, the running
            statistics of training, which are constants; or else mean and variance of each batch of
            ``batch_size`` images, as in training, which depend on the weights and are derived too.
    """

    def __init__(
        self,
        model: nn.Module,
        images: Images,
        classes: Integer[Tensor, "batch"],
        parameters: str | Sequence[str] | None = None,
        *,
        weight_decay: float = 0.0,
        label_smoothing: float = 0.0,
        batch_statistics: bool = False,
        batch_size: int = 256,
    ) -> None:
        model = copy.deepcopy(getattr(model, COMPILED, model)).eval().requires_grad_(False)
        self.model, self.weight_decay, self.smoothing = model, weight_decay, label_smoothing
        if batch_statistics:
            for module in model.modules():
                if isinstance(module, _BatchNorm):  # without running ones torch takes the batch's
                    module.running_mean = module.running_var = None
        self.parameters = _matching(model, parameters)
        flat = [p.reshape(-1) for p in self.parameters.values()]
        self.point: Float[Tensor, "1 n"] = torch.cat(flat)[None]
        self.count = 0  # images
        self.batches: list[tuple[Tensor, Tensor]] = []
        with torch.no_grad():
            for batch, some in with_classes(batches(images, batch_size)[1], classes):
                labels = chosen(some, logits(model, batch))
                parts = zip(batch.split(batch_size), labels.split(batch_size), strict=True)
                self.batches += parts
                self.count += len(batch)
        self.value = self(self.point).item()

    def __call__(self, w: Float[Tensor, "1 n"]) -> Float[Tensor, "1"]:
        """The loss for any weights, without a gradient."""
        with torch.no_grad(), plain_attention():
            losses = [self._share(batch, w) for batch in self.batches]
        return torch.stack(losses).sum(0) + self.weight_decay / 2 * w.square().sum(1)

    def gradient(self) -> Float[Tensor, "1 n"]:
        """The gradient at the model's weights."""
        with plain_attention():
            parts = [grad(lambda w, b=b: self._share(b, w).sum())(self.point) for b in self.batches]
        return torch.stack(parts).sum(0) + self.weight_decay * self.point

    def hessian(self) -> Operator:
        """Products with the Hessian ``H`` at the model's weights: ``[1, n] -> [1, n]``."""
        return self._summed(lambda batch: hessian(partial(self._share, batch), self.point))

    def gauss_newton(self) -> Operator:
        """Products with the generalised Gauss-Newton matrix ``G``, after Schraudolph (2002).

        ``G = mean J^T (diag(p) - p p^T) J``, where ``J`` is the Jacobian of an image's logits by
        the weights and ``p`` its probabilities. It is the Hessian of the loss with the logits made
        linear in the weights, and has no negative eigenvalue.
        """
        return self._summed(self._gauss_newton)

    def split(self, w: Float[Tensor, "1 n"]) -> dict[str, Tensor]:
        """The vector as the model's parameters, by name."""
        sizes = [p.numel() for p in self.parameters.values()]
        parts = zip(self.parameters.items(), w[0].split(sizes), strict=True)
        return {name: part.view_as(like) for (name, like), part in parts}

    def _logits(self, images: Tensor, w: Tensor) -> Tensor:
        return logits(partial(functional_call, self.model, self.split(w)), images)  # type: ignore

    def _share(self, batch: tuple[Tensor, Tensor], w: Tensor) -> Tensor:
        """What a batch adds to the loss, ``[1]``."""
        images, labels = batch
        answers = self._logits(images, w)
        total = F.cross_entropy(answers, labels, reduction="sum", label_smoothing=self.smoothing)
        return total[None] / self.count

    def _gauss_newton(self, batch: tuple[Tensor, Tensor]) -> Operator:
        at = linearise(lambda w: self._logits(batch[0], w)[None], self.point)
        p = at.value.softmax(-1)  # [1, batch, classes]

        def product(v: Tensor) -> Tensor:
            u = p * at.push(v)
            return at.pull(u - p * u.sum(-1, keepdim=True)) / self.count

        return product

    def _summed(self, product_of: Callable[[tuple[Tensor, Tensor]], Operator]) -> Operator:
        """The sum over batches, and the weight decay's part."""
        kept = product_of(self.batches[0]) if len(self.batches) == 1 else None

        def product(v: Tensor) -> Tensor:
            total = self.weight_decay * v
            if kept is not None:
                return total + kept(v)
            for batch in self.batches:
                total = total + product_of(batch)(v)
            return total

        return product


def _matching(model: nn.Module, patterns: str | Sequence[str] | None) -> dict[str, Tensor]:
    """The parameters that match, by name, each once."""
    named = {name: p.detach() for name, p in model.named_parameters()}
    wanted = [patterns] if isinstance(patterns, str) else list(patterns or ["*"])
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in named):
            raise LookupError(f"no parameter matches {pattern!r}; there are {list(named)[:8]} ...")
    matching = {n: p for n, p in named.items() if any(fnmatchcase(n, w) for w in wanted)}
    kinds = {p.dtype for p in matching.values()}
    if kinds not in ({torch.float32}, {torch.float64}):
        raise TypeError(
            f"expected weights all in float32, or all in float64: got {sorted(map(str, kinds))}"
        )
    return matching
