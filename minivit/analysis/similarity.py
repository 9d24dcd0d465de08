"""How alike two representations of the same pictures are: CKA of matrices and of models' layers."""

from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from minivit.analysis.representations import representations
from minivit.analysis.streaming import CKA, Similarity


def linear_cka(x: Tensor, y: Tensor, *, debiased: bool = True) -> Tensor:
    """CKA of two matrices with the linear kernel.

    It does not change when either is rotated (multiplied by an orthogonal matrix), scaled as a
    whole or shifted. Any other invertible linear map changes it.

    Args:
        x: A row for each picture, ``[n, ...]``; what is in a row is flattened.
        y: Likewise, of any other width, for the same pictures in the same order.
        debiased: Whether to estimate each inner product of Gram matrices without bias: see
            :class:`~minivit.analysis.streaming.CKA`. Otherwise the value is
            ``‖Y^T X‖² / (‖X^T X‖ ‖Y^T Y‖)`` of the centred matrices (Frobenius norms), which is far
            above 0 for unrelated ones that are wider than they are high.

    Returns:
        One number: at most 1, at least 0 if biased, and about 0 for unrelated matrices if not.

    Raises:
        ValueError: As for :class:`~minivit.analysis.streaming.CKA`'s ``update`` and ``result``.
    """
    seen = CKA(debiased=debiased)
    seen.update({"x": x}, {"y": y})
    return seen.result().values[0, 0]


def cka(
    model: nn.Module,
    images: Tensor | Iterable[Tensor],
    *names: str,
    other: nn.Module | None = None,
    other_names: Sequence[str] | None = None,
    debiased: bool = True,
) -> Similarity:
    """CKA of a model's layers with each other, or with another model's::

        cka(vit, images, "blocks.?").values                                # [blocks, blocks]
        cka(vit, images, "blocks.?", other=resnet).values                  # [blocks, blocks]
        cka(vit, images.split(256), "blocks.?")                            # in minibatches

    What a layer gives for a picture is flattened: all its tokens, or its whole map.

    Args:
        model: Any module. It is used in its mode of evaluation, and comes back as it was. Where it
            draws at random even so, as Hugging Face's ViTMAE does its mask, the layers of one model
            are compared under one draw, those of two under different ones.
        images: One batch, ``[n, ...]``, or an iterable of batches, of which one at a time is held:
            then it is the minibatch estimate. Leave out a last batch with fewer than 4.
        *names: The layers, as for :func:`~minivit.recording.record`.
        other: Another model, for the same pictures. Default: the model itself.
        other_names: Its layers. Default: those of ``names``.
        debiased: As for :class:`~minivit.analysis.streaming.CKA`.

    Raises:
        ValueError: As for :func:`linear_cka`.
        TypeError, LookupError, RuntimeError: As for :func:`~minivit.recording.record`.
    """
    seen = CKA(debiased=debiased)
    for batch in [images] if isinstance(images, Tensor) else images:
        x = representations(model, batch, names)
        if other is None and other_names is None:
            seen.update(x)
        else:
            columns = names if other_names is None else tuple(other_names)
            seen.update(x, representations(other or model, batch, columns))
    return seen.result()
