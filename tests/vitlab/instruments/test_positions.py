"""Tables of positions whose geometry is known: ramps, waves, sines and cosines, noise."""

import timm
import torch
import torchvision
from transformers import ViTConfig, ViTModel

import minivit
from minivit.positions import sincos_2d
from tests.parity import draw
from tests.refusals import assert_refused
from tests.vitlab.instruments.models import random
from vitlab.instruments import place_recovery, position_similarity, position_table


def test_the_table_of_any_model_lies_on_its_grid_without_the_class_token():
    for pool in "class", "mean":
        ours = draw(minivit.create("vit_8px", image_size=(8, 12), pool=pool))
        found = position_table(ours)
        assert found.shape == (4, 6, 64)
        assert torch.equal(found[1, 2], ours.positions.table[(pool == "class") + 8])
    theirs = draw(torchvision.models.VisionTransformer(32, 8, 1, 2, 8, 16))
    table = theirs.encoder.pos_embedding
    assert torch.equal(position_table(theirs)[3, 1], table[0, 14])
    assert torch.equal(position_table(theirs, (2, 8))[1, 0], table[0, 9])
    sizes = {"embed_dim": 16, "depth": 1, "num_heads": 2, "patch_size": 8, "img_size": (32, 48)}
    other = timm.create_model("vit_tiny_patch16_224", **sizes)
    known = other.pos_embed[0, 1:].unflatten(0, (4, 6))  # of 25 positions, which are 5 x 5 too
    assert torch.equal(position_table(other), known)
    face = ViTModel(ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2))
    assert torch.equal(position_table(face)[2, 0], face.embeddings.position_embeddings[0, 29])
    fixed = minivit.create("vit_8px", positions="sincos2d")
    fixed.post_network = torch.nn.Linear(16, 16)  # whose name holds "pos", as VOLO's
    assert torch.equal(position_table(fixed).flatten(0, 1), sincos_2d((4, 4), 64))


def test_row_and_column_are_recovered_where_they_are_in_the_table():
    where = torch.cartesian_prod(torch.arange(5), torch.arange(7)).view(5, 7, 2).double()
    hidden = where @ random(2, 50) + 3  # any linear map of them
    assert min(place_recovery(hidden)) > 1 - 1e-6
    row, column = place_recovery(where[..., :1] + 0 * where)
    assert row > 1 - 1e-6 and column < 0.05
    assert min(place_recovery(sincos_2d((8, 8), 64).unflatten(0, (8, 8)))) > 0.95
    for dim in 8, 300:
        assert max(place_recovery(random(8, 8, dim, seed=dim))) < 0.1  # noise, however wide


def test_bad_input_is_refused():
    cases = [
        (lambda: position_table(minivit.remove(minivit.create("vit_8px"), "positions")), "one table of positions in ViT: got none"),
        (lambda: position_table(minivit.create("resnet_8px")), "ResNet: got none"),
        (lambda: position_table(timm.create_model("swin_tiny_patch4_window7_224")), "relative_position_bias_table"),
        (lambda: position_table(minivit.create("vit_8px"), (3, 6)), "'positions.table' has 16 positions, which are no 3 x 6"),
        (lambda: place_recovery(torch.ones(4, 4, 3)), "nothing to read"),
        (lambda: position_similarity(torch.zeros(4, 4, 3)), "no direction"),
        (lambda: place_recovery(random(4, 4, 3) / 0), "finite"),
        (lambda: position_table(minivit.create("vit_8px"), 4), r"expected grid=\(rows, columns\): got 4"),
    ]  # fmt: skip
    assert_refused((call, ValueError, said) for call, said in cases)
