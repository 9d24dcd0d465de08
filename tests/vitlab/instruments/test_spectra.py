"""Spectra of Jacobians that are known, and of sub-layers of models by name."""

import pytest
import torch
from torch import nn

import minivit
from tests.parity import close, draw, random
from vitlab.calls import sublayer
from vitlab.instruments import spectrum

VALUES = torch.tensor([4.0, 2.0, 1.0, 1e-3, 0.0]).double()


def known(x):
    """At every point the singular values VALUES, and five rows for five columns."""
    u, v = (torch.linalg.qr(random(5, 5, seed=seed)).Q for seed in (1, 2))
    return x @ (u @ torch.diag(VALUES) @ v.mT)


@pytest.mark.parametrize(("rows", "columns"), [(30, 50), (50, 30), (40, 40)])
def test_lanczos_agrees_with_the_whole_jacobian_at_both_ends(rows, columns):
    a = random(rows, columns)

    def function(x):
        return (x @ a.mT).sin()

    x = random(2, columns, seed=1)
    dense, sparse = spectrum(function, x, dense=True), spectrum(function, x, dense=False)
    assert dense.shape == sparse.shape == (rows, columns)
    close(sparse.values, dense.values, 1e-8)  # as many steps as there are
    few = spectrum(function, x, dense=False, steps=25)
    assert few.values.shape[1] == 25
    close(few.values[:, 0], dense.values[:, 0], 1e-3)
    assert (few.condition <= dense.condition * (1 + 1e-9)).all()
    with pytest.raises(ValueError, match=r"all \d+ singular values for a rank: got 25"):
        few.rank()
    large = spectrum(lambda x: 2 * x, random(1, 5000), steps=3)  # goes to Lanczos by itself
    close(large.values, torch.full((1, 3), 2.0).double())


@pytest.mark.parametrize("dense", [True, False])
def test_modules_that_work_in_place_are_taken_where_they_are_and_change_nothing(dense):
    model, x = nn.Sequential(nn.ELU(inplace=True), nn.Flatten()).eval(), random(2, 6)
    before, expected = x.clone(), x.clamp(max=0).exp().sort(1, descending=True).values
    for function in model, sublayer(model, "0", x.clone())[0]:
        close(spectrum(function, x, dense=dense).values, expected)
    assert torch.equal(x, before)


def test_the_mask_of_a_model_goes_with_its_attention():
    model = draw(minivit.create("vit_8px", dim=12, heads=3, depth=1, local=1).double().eval())
    images = random(1, 1, 8, 8)
    attention = model.blocks[0].attention
    weight = attention.out.weight @ attention.qkv.weight[24:]  # each token sees itself alone
    found = spectrum(*sublayer(model, "blocks.0.attention", images))
    close(found.values[0], torch.linalg.svdvals(weight).repeat_interleave(16))


def test_known_singular_values_give_known_ranks_and_in_half_precision_the_digits_it_has():
    found = spectrum(known, random(3, 5))
    close(found.values, VALUES.expand(3, -1))
    assert found.shape == (5, 5) and not found.errors.any()
    assert found.rank().tolist() == [4] * 3 and found.rank(0.01).tolist() == [3] * 3
    assert (found.condition > 1e14).all()
    for dtype, digits in (torch.float16, 0.005), (torch.bfloat16, 0.03):
        for dense in True, False:
            x = random(2, 5).to(dtype)
            found = spectrum(lambda x: known(x.double()).to(x.dtype), x, dense=dense)
            assert found.values.dtype == found.errors.dtype == dtype
            close(found.values.double(), VALUES.expand(2, -1), digits)
        assert found.rank().tolist() == [3, 3]  # of 4, 2, 1, 0.001 and 0
