import pytest
import torch
import torch.nn.functional as F
from torch import nn

from minivit import MultiHeadAttention, scaled_dot_product_attention
from minivit.parts import local_mask, window_mask

# batch, heads, queries, keys, d_head, d_value: all different, so that no axis can stand for another
B, H, N, M, D, V = 2, 3, 5, 7, 4, 6
SOME = torch.rand(N, M, generator=torch.Generator().manual_seed(1)) > 0.4
NONE_FOR_ONE = SOME & (torch.arange(N) > 0)[:, None]


@pytest.mark.parametrize("mask", [None, SOME, NONE_FOR_ONE], ids=["all", "some", "none for one"])
def test_attention_equals_torch_in_outputs_and_gradients(mask):
    g = torch.Generator().manual_seed(0)
    shapes = (B, H, N, D), (B, H, M, D), (B, H, M, V)
    qkv = [torch.randn(s, generator=g, dtype=torch.float64, requires_grad=True) for s in shapes]
    ours = scaled_dot_product_attention(*qkv, mask)
    reference = F.scaled_dot_product_attention(*qkv, attn_mask=mask)
    assert reference.abs().max() > 0.1
    torch.testing.assert_close(ours, reference, rtol=1e-12, atol=1e-12)
    if mask is NONE_FOR_ONE:
        assert (ours[:, :, 0] == 0).all()
    mix = torch.randn(ours.shape, generator=g, dtype=torch.float64)
    gradients = (torch.autograd.grad(z, qkv, mix) for z in (ours, reference))
    for a, b in zip(*gradients, strict=True):
        assert a.isfinite().all()
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


def outputs_and_gradients(layer, x, mask):
    x = x.clone().requires_grad_()
    y = layer(x, mask)
    g = torch.randn(y.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    return [y, *torch.autograd.grad(y, [x, *layer.parameters()], g.to(y.dtype))]


MASKS = {
    "none": None,
    "window": window_mask((2, 3), 2, class_token=True),
    "local": local_mask((2, 3), 3, class_token=True),
    "a query with no key": torch.ones(7, 7, dtype=torch.bool).tril(-1),
    "one for each image and head": torch.rand(B, 3, 7, 7, generator=torch.Generator().manual_seed(1)) > 0.3,
}  # fmt: skip


# The explicit path rounds its weights to half precision, the fused kernel does not.
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-11), (torch.float32, 1e-5), (torch.bfloat16, 4e-2), (torch.float16, 5e-3)],
    ids=str,
)
@pytest.mark.parametrize("kind", MASKS)
def test_the_fused_path_equals_the_formula(monkeypatch, kind, dtype, tolerance):
    torch.manual_seed(0)
    layer, calls = MultiHeadAttention(12, 3), []
    for p in layer.parameters():
        nn.init.normal_(p, std=0.5)
    layer, x = layer.to(dtype), torch.randn(B, 7, 12).to(dtype)
    fused = outputs_and_gradients(layer, x, MASKS[kind])

    def formula(q, k, v, attn_mask, dropout_p):
        calls.append(dropout_p)
        return scaled_dot_product_attention(q, k, v, attn_mask)

    monkeypatch.setattr(F, "scaled_dot_product_attention", formula)
    for a, b in zip(outputs_and_gradients(layer, x, MASKS[kind]), fused, strict=True):
        assert b.abs().max() > 0.1
        assert (a - b).abs().max() <= tolerance * b.abs().max()
    assert calls == [0.0]


def test_dropout_removes_a_fraction_of_the_weights_while_training():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(4, 1, attention_dropout=0.25), torch.ones(1, 4000, 4)
    with torch.no_grad():  # values and outputs are 1 where no weight is dropped
        for part, value in (layer.qkv.weight, 0), (layer.qkv.bias, 1), (layer.out.bias, 0):
            part.fill_(value)
        layer.out.weight.copy_(torch.eye(4))
        y = layer(x)
        # A sum of 4000 weights, each 0 or 1 / 0.75 of 1 / 4000: mean 1, variance 1 / 3 of 1 / 4000
        assert y.mean().item() == pytest.approx(1, abs=0.001)
        assert y[0, :, 0].std().item() == pytest.approx((1 / 3 / 4000) ** 0.5, rel=0.1)
        assert torch.allclose(layer.eval()(x), x, atol=1e-4)  # a float32 sum of 4000


@pytest.mark.parametrize(("mask", "grid", "row", "column", "expected"), [
    (window_mask((4, 6), 2), (4, 6), 1, 3, "..xx.. ..xx.. ...... ......"),
    (window_mask((3, 5), 2), (3, 5), 2, 4, "..... ..... ....x"),  # smaller at the edge
    # Those that Swin rolls around, without the parts that are wrapped.
    (window_mask((6, 6), 4, shift=2), (6, 6), 0, 0, "xx.... xx...." + 4 * " ......"),
    (window_mask((6, 6), 4, shift=2), (6, 6), 2, 1, "...... ......" + 4 * " xx...."),
    (window_mask((5, 5), 3, shift=1), (5, 5), 1, 1, "..... .xxx. .xxx. .xxx. ....."),
    (local_mask((4, 6), 3), (4, 6), 1, 3, "..xxx. ..xxx. ..xxx. ......"),
    (local_mask((4, 6), 3), (4, 6), 0, 0, "xx.... xx.... ...... ......"),
    (local_mask((4, 6), 5), (4, 6), 0, 0, "xxx... xxx... xxx... ......"),
])  # fmt: skip
def test_what_one_patch_may_attend_to_as_an_image(mask, grid, row, column, expected):
    lines = mask[row * grid[1] + column].reshape(grid).tolist()
    shown = ["".join("x" if allowed else "." for allowed in line) for line in lines]
    assert shown == expected.split()


def test_masks_are_symmetric_and_a_class_token_sees_all_and_is_seen_by_all():
    for make, size in (window_mask, 2), (local_mask, 3):
        mask, larger = make((3, 5), size), make((3, 5), size, class_token=True)
        assert torch.equal(mask, mask.T) and mask.diagonal().all()
        assert larger.shape == (16, 16) and larger[0].all() and larger[:, 0].all()
        assert torch.equal(larger[1:, 1:], mask)
    assert window_mask((3, 5), 5).all() and local_mask((3, 5), 9).all()  # as large as the image
