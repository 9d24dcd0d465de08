"""The three largest Hessian eigenvalues of a small ViT, from four packages: right, wrong or dies.

As each package comes, and again with attention that has second derivatives. On 256 digits, of the
loss of ``digits_vit``, in float32 on the CPU. The reference is minivit's Lanczos with full
reorthogonalisation, whose errors it knows. A row says where a package is missing.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

import minivit
from vitlab.data import load_data
from vitlab.instruments import curvature
from vitlab.krylov import plain_attention

K = 3
Batch = tuple[Tensor, Tensor]


def ours(model: nn.Module, batch: Batch) -> Sequence[float]:
    return curvature(model, *batch, k=K).top.tolist()


def pyhessian(model: nn.Module, batch: Batch) -> Sequence[float]:
    from pyhessian import hessian

    curved = hessian(model, nn.CrossEntropyLoss(), data=batch, cuda=False)
    return curved.eigenvalues(maxIter=100, tol=1e-4, top_n=K)[0]


def pyhessian_density(model: nn.Module, batch: Batch) -> Sequence[float]:
    from pyhessian import hessian

    hessian(model, nn.CrossEntropyLoss(), data=batch, cuda=False).density(iter=10, n_v=1)
    return ()


def curvlinops(model: nn.Module, batch: Batch) -> Sequence[float]:
    from curvlinops import HessianLinearOperator
    from scipy.sparse.linalg import eigsh

    weights = list(model.parameters())
    operator = HessianLinearOperator(model, nn.CrossEntropyLoss(), weights, [batch])
    found = eigsh(operator.to_scipy(), k=K, which="LA", return_eigenvectors=False, tol=1e-4)
    return sorted(found.tolist(), reverse=True)


def eigenthings(model: nn.Module, batch: Batch, **how: Any) -> Sequence[float]:
    from hessian_eigenthings import HessianOperator, lanczos, supervised_loss

    operator = HessianOperator(model, [batch], supervised_loss(nn.CrossEntropyLoss()))
    return sorted(lanczos(operator, k=K, which="LA", **how).eigenvalues.tolist(), reverse=True)


ROWS: dict[str, tuple[str, Callable[..., Sequence[float]]]] = {
    "minivit": ("minivit", ours),
    "curvlinops": ("curvlinops-for-pytorch", curvlinops),
    "hessian-eigenthings": ("hessian-eigenthings", eigenthings),
    "hessian-eigenthings, max_iter=40": ("hessian-eigenthings", partial(eigenthings, max_iter=40)),
    "PyHessian": ("pyhessian", pyhessian),
    "PyHessian, density": ("pyhessian", pyhessian_density),
}


def word(measure: Callable[..., Sequence[float]], batch: Batch, known: Sequence[float]) -> str:
    """What a package answers: right within a thousandth, wrong, or how it dies."""
    model = minivit.load("digits_vit").requires_grad_()
    try:
        found = list(measure(model, batch))
    except ImportError as error:
        return f"not installed ({error.name})"
    except Exception as error:
        return f"dies: {type(error).__name__}: {str(error).splitlines()[0][:60]}"
    if not found:
        return "runs"
    right = all(abs(a / b - 1) < 1e-3 for a, b in zip(found, known, strict=True))
    return f"{'right' if right else 'wrong'}: " + " ".join(f"{x:.4f}" for x in found)


def main() -> None:
    torch.set_num_threads(1)
    model, data = minivit.load("digits_vit"), load_data("DIGITS").train[torch.arange(256)]
    batch = model.preprocess(data.images), data.labels
    known = ours(model, batch)
    for name, (package, measure) in ROWS.items():
        try:
            of = version(package) if package != "minivit" else minivit.__version__
        except ImportError:
            of = "-"
        for how, attention in (("as it comes", nullcontext), ("plain attention", plain_attention)):
            with attention():
                print(f"{name:34}{of:9}{how:17}{word(measure, batch, known)}", flush=True)


if __name__ == "__main__":
    main()
