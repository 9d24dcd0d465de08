import pytest
import torch
from torch import nn

from minivit import ViT, ViTConfig
from minivit.catalogue import changed
from minivit.families import build
from minivit.parts import AttentionPool
from minivit.positions import resample
from tests.refusals import unchecked

# Small, and with every number another.
SMALL = ViTConfig((12, 20), (4, 5), 2, 7, dim=24, depth=2, heads=3, mlp_ratio=1.5)


def made(seed=0, removed=(), **changes):
    """A small model that is random in every number: the head of an untrained one is zero."""
    torch.manual_seed(seed)
    model = build(changed(SMALL, changes), [(part, None) for part in removed]).eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.3)
    return model


def pictures(height=12, width=20, batch=3):
    g = torch.Generator().manual_seed(1)
    return torch.randn(batch, 2, height, width, generator=g)


@pytest.mark.parametrize("pool", ["class", "mean", "attention"])
@pytest.mark.parametrize("positions", ["none", "learned", "sincos1d", "sincos2d"])
def test_pools_and_positions_work_together_on_any_grid_and_pass_gradients(pool, positions):
    none = positions == "none"
    model = made(
        pool=pool, removed=["positions"] * none, **{} if none else {"positions": positions}
    )
    for size in (12, 20), (8, 35):
        images = pictures(*size).requires_grad_()
        logits = model(images)
        assert logits.shape == (3, 7)
        model.zero_grad()
        logits.square().sum().backward()
        assert all(p.grad.any() for p in model.parameters())
        assert images.grad.flatten(2).any(-1).all()
        tokens = model.tokens(images)
        assert tokens.shape == (3, (pool == "class") + size[0] // 4 * size[1] // 5, 24)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(
    "changes", [{"window": 2}, {"local": 3}, {"stem": "conv", "patch_size": 4}]
)
def test_windows_neighbourhoods_and_stems_go_with_every_block(norm, residual, changes):
    model = made(norm=norm, removed=[] if residual else ["residual"], **changes)
    logits = model(pictures())
    assert logits.shape == (3, 7) and logits.std(0).min() > 1e-5
    assert model(pictures(16, 40)).shape == (3, 7)


def test_logits_are_the_head_of_the_pooled_norm_of_the_tokens():
    images = pictures()
    by_class, by_mean = made(pool="class"), made(pool="mean")
    tokens = by_class.norm(by_class.tokens(images))
    torch.testing.assert_close(by_class(images), by_class.head(tokens[:, 0]))
    tokens = by_mean.norm(by_mean.tokens(images))
    torch.testing.assert_close(by_mean(images), by_mean.head(tokens.mean(1)))


@pytest.mark.parametrize(
    "removed", [["mlp", "norm2"], ["attention", "norm1"], ["norm"], ["norm", "mlp"]], ids=str
)
def test_models_without_a_part_and_its_norm_have_no_number_that_does_nothing(removed):
    model, images = made(pool="mean", removed=removed), pictures().requires_grad_()
    logits = model(images)
    logits.square().sum().backward()
    assert all(p.grad.any() for p in model.parameters())
    assert images.grad.flatten(2).any(-1).all()


def test_one_patch_without_attention_norms_and_residuals_is_a_plain_dense_net():
    removed = ["attention", "norm", "residual", "positions"]
    model = made(patch_size=(12, 20), pool="mean", removed=removed)
    layers = [nn.Flatten(), nn.Linear(2 * 12 * 20, 24)]
    for _ in range(2):
        layers += [nn.Linear(24, 36), nn.GELU(), nn.Linear(36, 24)]
    dense = nn.Sequential(*layers, nn.Linear(24, 7))
    numbers = [p.flatten(1) if p.ndim > 1 else p for p in model.state_dict().values()]
    dense.load_state_dict(dict(zip(dense.state_dict(), numbers, strict=True)))
    expected = dense(pictures())
    assert expected.std() > 0.1
    torch.testing.assert_close(model(pictures()), expected, rtol=1e-4, atol=1e-4)


def test_attention_pooling_is_torchs_attention_of_a_learned_query_and_an_mlp():
    torch.manual_seed(0)
    pool, torchs = AttentionPool(12, 3, 20).double(), nn.MultiheadAttention(12, 3).double()
    for p in pool.parameters():
        nn.init.normal_(p, std=0.5)
    torchs.batch_first = True
    with torch.no_grad():  # a query that is not projected: the matrix is the identity
        torchs.in_proj_weight.copy_(torch.cat([torch.eye(12).double(), pool.kv.weight]))
        torchs.in_proj_bias.copy_(torch.cat([torch.zeros(12).double(), pool.kv.bias]))
        torchs.out_proj.load_state_dict(pool.out.state_dict())
    x = torch.randn(2, 5, 12).double()
    query = pool.query.reshape(1, 1, 12).expand(2, -1, -1)
    pooled = torchs(query, x, x)[0][:, 0]
    expected = pooled + pool.mlp(pool.norm(pooled))
    torch.testing.assert_close(pool(x), expected, rtol=1e-11, atol=1e-11)


def test_without_positions_the_order_of_the_patches_is_not_seen_and_with_them_it_is():
    images = pictures(8, 20)
    swapped = torch.cat([images[:, :, 4:], images[:, :, :4]], 2)  # the two rows of patches
    for pool in "class", "mean", "attention":
        blind = made(pool=pool, removed=["positions"])
        torch.testing.assert_close(blind(swapped), blind(images), rtol=1e-4, atol=1e-5)
        for positions in "learned", "sincos1d", "sincos2d":
            model = made(pool=pool, positions=positions)
            assert (model(swapped) - model(images)).abs().max() > 1e-2


@pytest.mark.parametrize("changes", [{"window": 2}, {"local": 3}])
def test_a_patch_far_away_is_not_seen_through_one_block(changes):
    far = pictures()
    far[:, :, -4:, -5:] += 1  # the last patch
    for model, reaches in (made(pool="mean", depth=1, **changes), False), (made(pool="mean"), True):
        first = (model.tokens(far) - model.tokens(pictures()))[:, 0]
        assert first.any() == reaches


def test_another_size_of_images_is_as_if_the_table_had_been_resampled():
    model, other = made(), made(image_size=(16, 40))
    state = model.state_dict()
    state["positions.table"] = resample(state["positions.table"], (3, 4), (4, 8))
    other.load_state_dict(state)
    torch.testing.assert_close(model(pictures(16, 40)), other(pictures(16, 40)))


def rates(model, part):
    hooks = [list(getattr(block, part)._forward_hooks.values()) for block in model.blocks]
    return [found[0].rate if found else 0 for found in hooks]


def test_stochastic_depth_grows_linearly_from_the_first_block_to_the_last():
    model = made(depth=5, stochastic_depth=0.2)
    for part in "attention", "mlp":
        assert rates(model, part) == pytest.approx([0, 0.05, 0.1, 0.15, 0.2])
    assert rates(made(depth=1, stochastic_depth=0.2), "mlp") == [0]


def test_an_untrained_model_starts_as_torchvisions():
    torch.manual_seed(0)
    model = ViT(ViTConfig(32, 4, classes=10, dim=64, depth=1, heads=4))
    assert not model.class_token.any()
    assert not model.head.weight.any() and not model.head.bias.any()
    assert not model.patch_embedding.projection.bias.any()
    assert model.positions.table.std().item() == pytest.approx(0.02, rel=0.05)
    assert not model(torch.randn(2, 3, 32, 32)).any()


def test_module_names_are_those_that_the_book_uses():
    names = dict(made().named_modules()).keys()
    expected = {"patch_embedding", "positions", "blocks.1.norm1", "blocks.1.attention.qkv",
                "blocks.1.attention.out", "blocks.1.norm2", "blocks.1.mlp", "norm", "head"}  # fmt: skip
    assert expected <= names
    assert "class_token" in made().state_dict()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes_work_on_other_grids_too(dtype):
    model = made(window=2)
    expected = model(pictures(16, 40))
    logits = made(window=2).to(dtype)(pictures(16, 40).to(dtype))
    assert logits.dtype == dtype
    torch.testing.assert_close(logits.float(), expected, rtol=0.1, atol=0.1)


@pytest.mark.full
def test_compilation_meets_no_graph_break():
    model = made(local=3)
    compiled = torch.compile(made(local=3), backend="eager", fullgraph=True)
    with unchecked():  # the checks of types are no part of the graph
        logits = compiled(pictures(16, 40))
    torch.testing.assert_close(logits, model(pictures(16, 40)))


def test_a_jacobian_and_a_second_derivative_come_out_with_torchs_plain_attention():
    model, images = made().double(), pictures(batch=1).double()
    plain = torch.nn.attention.SDPBackend.MATH
    with torch.nn.attention.sdpa_kernel(plain):
        _, forward = torch.func.jvp(model, (images,), (images,))
        images.requires_grad_()
        (gradient,) = torch.autograd.grad(model(images).square().sum(), images, create_graph=True)
        (second,) = torch.autograd.grad((gradient * images).sum(), images)
    assert forward.any() and second.isfinite().all() and second.any()
