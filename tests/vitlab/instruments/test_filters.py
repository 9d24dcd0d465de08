"""Filters and tables of positions whose components, spectra and geometry are known."""

import pytest
import torch
from scipy.fft import dctn
from sklearn.decomposition import PCA
from torch import nn

import minivit
import vitlab
from minivit.positions import sincos_2d
from tests.parity import close, draw, random
from vitlab.instruments.filters import dct2, dct_matrix


def test_first_filters_are_a_copy_of_weights_and_patches_are_images_in_reading_order():
    ours = minivit.create("vit_8px", patch_size=(2, 4), dim=12)
    assert torch.equal(vitlab.first_filters(ours), ours.patch_embedding.projection.weight)
    vitlab.first_filters(ours).zero_()
    assert vitlab.first_filters(ours).shape == (12, 1, 2, 4) and vitlab.first_filters(ours).any()
    image = torch.arange(48.0).view(1, 2, 4, 6)
    cut = vitlab.cut_patches(image, (2, 3))
    assert cut.shape == (4, 2, 2, 3)
    assert torch.equal(cut[1], image[0, :, :2, 3:]) and torch.equal(cut[2], image[0, :, 2:, :3])


@pytest.mark.parametrize("n", [10, 200])
def test_components_are_a_librarys(n):
    pictures = random(n, 2, 3, 4) * torch.arange(1, 5) + 3
    found = vitlab.principal_components(pictures)
    theirs = PCA().fit(pictures.flatten(1).numpy())
    k = min(n - 1, 24)
    assert found.pictures.shape == (k, 2, 3, 4)
    close(found.variance, torch.tensor(theirs.explained_variance_)[:k])
    basis = found.pictures.flatten(1)
    close((basis * torch.tensor(theirs.components_)[:k]).sum(1).abs(), torch.ones(k).double(), 1e-7)
    assert (basis.gather(1, basis.abs().argmax(1, keepdim=True)) > 0).all()
    again = vitlab.principal_components(-pictures)  # the sign is ours
    close(again.pictures[:3], found.pictures[:3], 1e-7)


def test_the_cosine_transform_is_a_librarys_and_orthonormal():
    x = random(5, 8, 3)
    close(dct2(x), torch.tensor(dctn(x.numpy(), axes=(0, 1), norm="ortho")))
    close(dct_matrix(1), torch.ones(1, 1).double())
    waves = vitlab.cosine_basis(3, (4, 6)).flatten(1)
    close(waves @ waves.mT, torch.eye(24).double())
    basis = waves.view(24, 3, 4, 6)
    close(basis[0], torch.full((3, 4, 6), 72**-0.5, dtype=torch.float64))
    assert basis[1].std(1).max() < 1e-9 < basis[2].std(1).max()  # wider than high: across first


def test_overlap_is_one_for_the_same_space_and_the_share_at_random():
    a = torch.linalg.qr(random(24, 24)).Q.view(24, 2, 3, 4)
    turned = (torch.linalg.qr(random(5, 5, seed=1)).Q @ a[:5].flatten(1)).view(5, 2, 3, 4)
    close(vitlab.subspace_overlap(a[:5], turned), torch.tensor(1.0).double())
    close(vitlab.subspace_overlap(a[:5], a[5:]), torch.tensor(0.0).double())
    close(vitlab.subspace_overlap(a[:4], a[2:12]), torch.tensor(0.5).double())
    spaces = (torch.linalg.qr(random(24, 8, seed=s)).Q.mT.reshape(8, 2, 3, 4) for s in range(99))
    others = torch.stack([vitlab.subspace_overlap(a[:5], space) for space in spaces])
    assert others.mean().item() == pytest.approx(8 / 24, abs=0.02)


def wave(rows, columns, down, across, phase=0.0):
    y, x = torch.arange(rows).double()[:, None], torch.arange(columns).double()
    return torch.cos(2 * torch.pi * (down * y / rows + across * x / columns) + phase)


def test_filters_made_of_one_two_and_all_waves_are_counted():
    one, other, chequer = (wave(8, 6, *at, phase=0.4) for at in ((1, 2), (3, 0), (4, 3)))
    flat = torch.ones(8, 6).double()
    spike = torch.zeros(8, 6).double()
    spike[2, 3] = 1
    filters = torch.stack([one, one + other, flat, chequer, spike])[:, None] * 5
    found = vitlab.filter_spectra(filters)
    places = 8 * 6
    pairs = (places - 4) / 2
    even = 1 / (pairs * (2 / places) ** 2 + 4 * (1 / places) ** 2)
    close(found.waves, torch.tensor([1, 2, 1, 1, even], dtype=torch.float64))
    close(found.norms, filters.flatten(1).norm(dim=1))
    close(found.frequency[:4], torch.tensor([
        (1 / 64 + 4 / 36) ** 0.5, ((1 / 64 + 4 / 36) ** 0.5 + 3 / 8) / 2, 0, 0.5**0.5
    ], dtype=torch.float64))  # fmt: skip
    assert found.structured().tolist() == [True, True, True, True, False]
    close(found.power.sum((1, 2)), torch.ones(5).double())


def test_of_noise_a_known_share_passes_for_a_pattern():
    found = vitlab.filter_spectra(random(4000, 3, 8, 8, seed=7))
    for level in (0.01, 0.2):
        share = found.structured(level).double().mean().item()
        assert share == pytest.approx(level, abs=0.012 + level / 10)
    # Powers of six squares each: E[p]^2 / E[p^2] = 3 / 4, of about 34 waves.
    assert found.noise.mean().item() == pytest.approx(0.75 * 34, rel=0.05)


def test_the_table_of_a_model_lies_on_its_grid_without_the_class_token():
    """google-research/vision_transformer#317."""
    for pool in "class", "mean":
        ours = draw(minivit.create("vit_8px", image_size=(8, 12), pool=pool))
        table = ours.positions.table[pool == "class" :]
        assert torch.equal(vitlab.position_table(ours), table.view(4, 6, 64))
        assert torch.equal(vitlab.position_table(ours, (3, 8)), table.view(3, 8, 64))
    fixed = minivit.create("vit_8px", positions="sincos2d")
    fixed.post_network = nn.Linear(16, 16)  # whose name holds "pos", as VOLO's
    assert torch.equal(vitlab.position_table(fixed).flatten(0, 1), sincos_2d((4, 4), 64))


def test_row_and_column_are_recovered_where_they_are_in_the_table():
    where = torch.cartesian_prod(torch.arange(5), torch.arange(7)).view(5, 7, 2).double()
    hidden = where @ random(2, 50) + 3  # any linear map of them
    assert min(vitlab.place_recovery(hidden)) > 1 - 1e-6
    row, column = vitlab.place_recovery(where[..., :1] + 0 * where)
    assert row > 1 - 1e-6 and column < 0.05
    assert min(vitlab.place_recovery(sincos_2d((8, 8), 64).unflatten(0, (8, 8)))) > 0.95
    for dim in 8, 300:
        assert max(vitlab.place_recovery(random(8, 8, dim, seed=dim))) < 0.1  # noise, however wide
