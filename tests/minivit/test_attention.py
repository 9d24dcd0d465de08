import pytest
import torch
import torch.nn.functional as F
from torch import nn

from minivit import MultiHeadAttention, attention_weights, scaled_dot_product_attention

# batch, heads, queries, keys, d_head, d_value: all different, so that no axis can stand for another
B, H, N, M, D, V = 2, 3, 5, 7, 4, 6


def qkv():
    g = torch.Generator().manual_seed(0)
    shapes = (B, H, N, D), (B, H, M, D), (B, H, M, V)
    return [torch.randn(s, generator=g, dtype=torch.float64, requires_grad=True) for s in shapes]


def mask(kind):
    some = torch.rand(N, M, generator=torch.Generator().manual_seed(1)) > 0.4
    return {
        "none": None,
        "some keys": some,
        "a query with no key": some & (torch.arange(N) > 0)[:, None],
    }[kind]


@pytest.mark.parametrize("kind", ["none", "some keys", "a query with no key"])
def test_attention_equals_torch_in_outputs_and_gradients(kind):
    inputs = qkv()
    ours = scaled_dot_product_attention(*inputs, mask(kind))
    reference = F.scaled_dot_product_attention(*inputs, attn_mask=mask(kind))
    assert reference.abs().max() > 0.1
    torch.testing.assert_close(ours, reference, rtol=1e-12, atol=1e-12)
    g = torch.randn(ours.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    for a, b in zip(
        torch.autograd.grad(ours, inputs, g), torch.autograd.grad(reference, inputs, g), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


def test_weights_of_scores_0_and_log_3_are_a_quarter_and_three_quarters():
    q = torch.tensor([[2.0, 0.0, 0.0, 0.0]])  # sqrt(d) = 2, so the scores are the first entries
    k = torch.zeros(2, 4)
    k[1, 0] = torch.log(torch.tensor(3.0))
    torch.testing.assert_close(attention_weights(q, k), torch.tensor([[0.25, 0.75]]))


def test_a_query_that_may_attend_to_nothing_gets_zeros_and_finite_gradients():
    q, k, v = qkv()
    z = scaled_dot_product_attention(q, k, v, mask("a query with no key"))
    assert (z[:, :, 0] == 0).all()
    for gradient in torch.autograd.grad(z.sum(), (q, k, v)):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("heads", [1, 3, 4])
def test_multi_head_attention_equals_torch_with_the_same_weights(heads):
    torch.manual_seed(0)
    ours, torchs = MultiHeadAttention(12, heads).double(), nn.MultiheadAttention(12, heads).double()
    torchs.batch_first = True
    for p in torchs.parameters():
        nn.init.normal_(p)  # biases too, which start at zero
    names = {"in_proj_weight": "qkv.weight", "in_proj_bias": "qkv.bias",
             "out_proj.weight": "out.weight", "out_proj.bias": "out.bias"}  # fmt: skip
    ours.load_state_dict({names[name]: p for name, p in torchs.state_dict().items()})
    x = torch.randn(B, N, 12, dtype=torch.float64)
    allowed = torch.ones(N, N, dtype=torch.bool).tril()
    reference, _ = torchs(x, x, x, need_weights=False)
    torch.testing.assert_close(ours(x), reference, rtol=1e-12, atol=1e-12)
    causal, _ = torchs(x, x, x, attn_mask=~allowed)  # torch's module means the opposite by True
    torch.testing.assert_close(ours(x, allowed), causal, rtol=1e-12, atol=1e-12)


def test_shuffled_tokens_give_shuffled_outputs():
    torch.manual_seed(0)
    layer, x, order = (
        MultiHeadAttention(12, 3).double(),
        torch.randn(B, N, 12).double(),
        [3, 1, 4, 0, 2],
    )
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: attention_weights(torch.ones(2, 3), torch.ones(2, 4)), r"got q \[2, 3\], k \[2, 4\]"),
        (lambda: attention_weights(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 2)), "boolean.*float32"),
        (lambda: scaled_dot_product_attention(torch.ones(2, 3), torch.ones(4, 3), torch.ones(5, 3)), r"one value for each key.*\[4, 3\].*\[5, 3\]"),
        (lambda: MultiHeadAttention(10, 3), "got dim=10, heads=3"),
        (lambda: MultiHeadAttention(10, 0), "got dim=10, heads=0"),
        (lambda: MultiHeadAttention(12, 3)(torch.ones(2, 5, 10)), r"\[batch, tokens, 12\]: got \[2, 5, 10\]"),
        (lambda: MultiHeadAttention(12, 3)(torch.ones(5, 12)), r"\[batch, tokens, 12\]: got \[5, 12\]"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_what_was_given_and_expected(call, said):
    with pytest.raises(ValueError, match=said):
        call()
