"""What instruments, inversions, products and figures are not made for, and what they say of it."""

from functools import partial

import matplotlib
import pytest
import torch
from matplotlib.figure import Figure
from torch import nn

import minivit
import vitlab
from tests.parity import Function, draw, random
from tests.refusals import assert_refused
from tests.vitlab.instruments.models import Known, SharedBlock, everybodys, images
from tests.vitlab.instruments.test_curvature import LABELS as THIRDS
from tests.vitlab.instruments.test_curvature import images as tiny_images
from tests.vitlab.instruments.test_curvature import small
from tests.vitlab.instruments.test_localisation import IMAGES as OBLONG
from tests.vitlab.instruments.test_localisation import Tokens
from tests.vitlab.inversion.test_collisions import HERE, double, gates, square
from tests.vitlab.inversion.test_generate import linear
from tests.vitlab.inversion.test_generate import small as small_vit
from tests.vitlab.inversion.test_norms import norm_of
from tests.vitlab.inversion.test_optimise import IMAGES, Linear, Q
from tests.vitlab.inversion.test_residual import made
from tests.vitlab.test_krylov import times
from tests.vitlab.tried.architectures import ARCHITECTURES
from tests.vitlab.tried.table import built
from vitlab import figures, inversion, krylov
from vitlab.instruments.weights import WeightLoss

matplotlib.use("Agg")
VIT = draw(minivit.create("vit_8px", dim=12, heads=3, depth=3)).eval()
VIT.head.weight.zero_()
X, LABELS, TWO = random(12, 1, 8, 8).float(), torch.arange(12) % 3, torch.rand(2, 1, 8, 8)
TEST = X, LABELS
PICTURES, SMALL_PICTURES = images(2, (32, 32)), images(2, (16, 16))
WIDE, MIXER = draw(minivit.create("vit_32px", depth=2)).eval(), minivit.create("mixer_32px")
NARROW = draw(minivit.create("vit_32px", image_size=16, depth=2, dim=16, heads=2)).eval()
TINY, TINY_IMAGES, MEAN = small(), tiny_images(), everybodys("minivit mean")[:2]
DEEP = nn.Sequential(nn.Flatten(), nn.Linear(6, 4), nn.Linear(4, 3).double())
DIGITS, BYTES = minivit.load("digits_vit"), torch.zeros(2, 1, 8, 8, dtype=torch.uint8)
FLAT = linear(torch.eye(2).view(2, 1, 2, 1) * torch.tensor([0.0, 1]).view(2, 1, 1, 1))
ROW, TOKENS, SWIN = random(1, 3), torch.zeros(1, 16, 64), built(ARCHITECTURES["timm Swin"])


def shared():
    model = Known(torch.eye(12)[None])
    model.blocks[0] = SharedBlock(torch.eye(12)[None])
    return model


def skipping():
    """What it answers needs the images, too."""
    model = draw(minivit.create("vit_32px", depth=2))
    model.register_forward_hook(lambda _, x, y: y + x[0].mean((2, 3)).sum(1)[:, None])
    return model


def dead():
    norm = norm_of(6)
    norm.weight[2] = 0
    return norm


def broken():
    model = small()
    next(model.parameters()).data.fill_(torch.nan)
    return model


curvature, landscape = (partial(f, TINY, TINY_IMAGES, THIRDS) for f in (vitlab.instruments.curvature, vitlab.instruments.landscape))  # fmt: skip
field, localised = partial(vitlab.receptive_field, *MEAN), partial(vitlab.localisation, Tokens(range(6)))  # fmt: skip
overlay, watched = partial(figures.overlay, Figure().subplots()), partial(figures.attention_overlay, WIDE, PICTURES[:1])  # fmt: skip
REFUSED = {
    "curvature": [
        (lambda: curvature("blocks.*"), LookupError, r"no parameter matches 'blocks.\*'; there are \['1.weight'"),
        (lambda: curvature(k=41), "expected k from 1 to .*: got 41"),
        (lambda: vitlab.batch_maxima(TINY, TINY_IMAGES, THIRDS, batch_size=11), "expected 11 images, a mini-batch, or more: got 10"),
        (lambda: WeightLoss(broken(), TINY_IMAGES, THIRDS), "finite numbers: got NaN"),
        (lambda: WeightLoss(DEEP, TINY_IMAGES, THIRDS), TypeError, "all in float32, or all in float64: got .*float32.*float64"),
    ],
    "landscape": [
        (lambda: landscape(points=4), "odd number of points: got .*and 4"),
        (lambda: landscape(directions=3), "expected from 1 to 2 as directions: got 3"),
        (lambda: landscape(directions=torch.ones(1, 5)), r"got \[1, 5\]"),
    ],
    "dictionary": [
        (lambda: vitlab.learn_dictionary(torch.ones(20, 4), 8, k=2), r"tokens that differ.*got \[20, 4\]"),
    ],
    "rollout and relevance": [
        *((partial(call, MIXER, PICTURES), "Mixer computes no attention between tokens") for call in (vitlab.rollout, vitlab.relevance)),
        (lambda: vitlab.rollout(VIT, TWO, identity=1.5), "from 0 to 1 as identity: got 1.5"),
        (lambda: vitlab.relevance(shared(), images()), r"\[2, 1, 12, 12\] for 2 images: got \[1, 1, 12, 12\]; give one"),
        (lambda: vitlab.relevance(VIT, TWO.byte()), (TypeError, ValueError), "expected images of"),
    ],
    "filters": [
        (lambda: vitlab.first_filters(nn.Linear(3, 4)), TypeError, "expected a convolution.*: got Linear"),
        (lambda: vitlab.principal_components(torch.full((9, 1, 2, 2), 0.1)), r"differ: got \[9, 1, 2, 2\]"),
        (lambda: vitlab.subspace_overlap(random(2, 1, 2, 2), random(2, 1, 2, 2)), "orthonormal"),
        (lambda: vitlab.filter_spectra(random(4, 3, 1, 1)), r"two pixels or more.*got \[4, 3, 1, 1\]"),
        (lambda: vitlab.filter_spectra(torch.zeros(2, 1, 4, 4)), "none of them zero"),
    ],
    "positions": [
        (lambda: vitlab.position_table(minivit.remove(VIT, "positions")), "one table of positions in ViT: got none"),
        (lambda: vitlab.position_table(SWIN[0]), "relative_position_bias_table"),
        (lambda: vitlab.position_table(VIT, (3, 6)), "3 x 6 patches .* in 'positions.table': got 16 positions"),
        (lambda: vitlab.position_similarity(torch.zeros(4, 4, 3)), "with a direction .* zero"),
    ],
    "frequencies": [
        (lambda: vitlab.layer_frequencies(NARROW, SMALL_PICTURES, "head"), r"\[2, \d+\] is neither tokens of a known grid"),
        (lambda: vitlab.layer_frequencies(NARROW, SMALL_PICTURES, "blocks.0.attention.weights"), "names of modules"),
        (lambda: vitlab.layer_frequencies(NARROW, SMALL_PICTURES, "blocks.0", grid=(3, 5)), "grid="),
        (lambda: vitlab.stream_frequencies(minivit.create("resnet_32px"), PICTURES), "no residual connection"),
        (lambda: vitlab.log_amplitude(torch.ones(2, 3, 1, 8)), "two positions"),
        (lambda: vitlab.log_amplitude(torch.ones(1, 1, 4, 6)).diagonal, "square"),
        (lambda: vitlab.band_pass(SMALL_PICTURES, 0.3, 0.2), "low < high"),
    ],
    "smoothing": [
        (lambda: vitlab.frequency_response(torch.eye(12), (3, 5)), r"\[15, 15\]"),
        (lambda: vitlab.frequency_response(torch.eye(12), (-3, -4)), r"grid=\(rows, columns\), each 1 or more: got \(-3, -4\)"),
        (lambda: vitlab.patch_means(torch.ones(1, 8, 8), (3, 2)), r"maps that 3 x 2 patches divide: got \[1, 8, 8\]"),
    ],
    "lens and norms": [
        (lambda: vitlab.logit_lens(minivit.create("resnet_32px"), PICTURES), "ResNet .* no row of blocks from tokens"),
        (lambda: vitlab.logit_lens(skipping(), PICTURES), "logits of ViT that follow from what 'blocks.1' gives"),
    ],
    "localisation": [
        (lambda: localised(OBLONG, "layer", grid=(3, 2)), "that divide an image of 4 x 6 pixels: got 3 x 2"),
        (lambda: localised(OBLONG * (torch.arange(6) > 1), "layer"), "nothing to compare: .*token 0"),
    ],
    "probes": [
        (lambda: vitlab.probes(VIT, (X, LABELS * 0), TEST, "blocks.0"), r"two classes or more: got 12 of the classes \[0\]"),
        (lambda: vitlab.probes(VIT, (X, LABELS - 1), TEST, "blocks.0"), r"got 12 of the classes \[-1, 0, 1\]"),
        (lambda: vitlab.probes(VIT, (X * 0, LABELS), TEST, "blocks.0"), "nothing to read: the features are the same"),
        (lambda: vitlab.ridge(random(2, 3), random(2, 1)), r"three rows or more: got \[2, 3\]"),
        *((lambda n=n: vitlab.ensemble(random(2, 5, 3), LABELS[:5] + n), f"a class below 3 for .*got.*{n}") for n in (-1, 1)),
    ],
    "receptive field": [
        (lambda: field("blocks.0", place=(3, 0)), r"the 3 x 4 positions of 'blocks.0': got \(3, 0\)"),
    ],
    "similarity": [
        (lambda: vitlab.linear_cka(X[:3], X[:3]), "expected 4 images or more in every batch.*: got 3"),
        (lambda: vitlab.linear_cka(X, X[:1].expand(12, -1, -1, -1)), r"nothing to compare: \['y'\] give the same"),
        (lambda: vitlab.linear_cka(X, X, debiased="no"), TypeError, "expected True or False as debiased: got 'no'"),
        (lambda: vitlab.cka(VIT, X.split([4, 1, 7]), "blocks.0"), "expected 4 images .*: got 1"),
        (lambda: vitlab.cka(VIT, X), "names of modules, such as 'head': got none"),
        (lambda: vitlab.cka(VIT, X, "head"), r"nothing to compare: \['head'\]"),
    ],
    "spectrum": [
        (partial(vitlab.spectrum, function, x, dense=dense), *said) for dense in (True, False) for function, x, *said in (
            (torch.sin, ROW[0], r"one entry or more: got \[3\]"),
            (torch.sin, ROW[:0], r"\[batch, ...\], one entry or more: got \[0, 3\]"),
            (torch.log, ROW * 0, "of finite numbers: got|finite real numbers as x"),
        )
    ],
    "products": [
        (lambda: krylov.gmres(torch.sin, ROW.half()), "float32 or float64: got torch.float16"),
        (lambda: krylov.lanczos(torch.sin, ROW.half(), 2), "got 2 and torch.float16"),
        (lambda: krylov.lanczos(times(torch.full((1, 3, 3), torch.nan).double()), ROW, 2), "a linear map of finite numbers"),
    ],
    "collisions": [
        (lambda: inversion.compare(square, double([2, 1]).float(), double([2, 1])), TypeError, "float64. as first: got .* torch.float32"),
        (lambda: inversion.collide_across_fold(square, *[double([2, 1])] * 2), r"got \[1.0, 1.0\]"),
        (lambda: inversion.hidden_directions(gates, HERE.expand(2, 3)), r"\[1, \*shape\] .* as (x|where): got"),
    ],
    "fibres": [
        *((partial(inversion.fibre, norm, y.double()), *said) for norm, y, *said in (
            (nn.LayerNorm((2, 6)).double(), random(2, 6), TypeError, "over one axis"),
            (nn.LayerNorm(6).double(), random(2, 6) + 1, "no input .* check gamma and beta"),
            (nn.LayerNorm(6, eps=0).double(), torch.tensor([0.5, -0.5] * 3), "no input"),
            (dead(), torch.zeros(6), "without zeros in gamma"),
        )),
        *((lambda n=n: inversion.meeting(inversion.fibre(norm_of(12), norm_of(12)(random(2, 5, 12))), random(12, n), random(12)), "tokens of 12 numbers .* rank 1[12] leave [10] dimensions")
          for n in (11, 12, 30)),
    ],
    "blocks that cannot be undone": [
        (lambda block=block: inversion.invert_block(block(), random(1, 4, 12)), *said) for block, *said in (
            (lambda: made("vit_8px", dim=12, heads=3, norm="post").blocks[0], "expected norm='pre'"),
            (lambda: made("vit_8px", dim=12, heads=3, removed=["residual"]).blocks[0], r"x \+ f\(x\): got one without residuals"),
            (lambda: made("mixer_8px", image_size=4, dim=12).train().blocks[0], r"training mode .* call eval\(\) first"),
            (lambda: nn.TransformerEncoderLayer(12, 3), TypeError, "ViT or Mixer: got TransformerEncoderLayer"),
        )
    ],
    "tokens that cannot be unwound": [
        (lambda: inversion.unwind(nn.Linear(2, 2), TOKENS, "blocks.1"), TypeError, "minivit.ViT or Mixer.*: got Linear"),
        (lambda: inversion.unwind(made("vit_8px").train(), TOKENS, "blocks.1"), r"call eval\(\) first"),
        (lambda: inversion.unwind(made("vit_8px"), TOKENS, "blocks.4"), "blocks.0 to blocks.3: got 'blocks.4'"),
        (lambda: inversion.unwind(made("vit_8px"), torch.zeros(2, 15, 64), "blocks.1"), r"expected tokens \[batch, 16, 64\]: got \[2, 15, 64\]"),
        (lambda: inversion.unwind(made("vit_8px"), torch.full((2, 16, 64), 1e30), "blocks.1"), r"such as a block gives, below 1e\+06: got 1e\+30"),
        (lambda: inversion.unwind(made("vit_8px"), TOKENS, "blocks.3", start=torch.zeros(1, 1, 8, 12)), r"images \[1, 1, 8, 8\] as a start: got \[1, 1, 8, 12\]"),
        (lambda: inversion.Climb(made("vit_8px"), "blocks.3", TWO), "16 pictures or more: got 2"),
    ],
    "images to invert": [
        (partial(inversion.invert, **{"model": Linear(Q), "image": IMAGES, "at": "first"} | change), *said) for change, *said in (
            ({"optimizer": "sgd"}, "one of gd, adam, lbfgs, gauss-newton: got optimizer='sgd'"),
            ({"step_size": 0.1}, "got optimizer='lbfgs', step_size=0.1"),
            ({"blur": 2.4}, "got optimizer='lbfgs', blur=2.4"),
            ({"target": IMAGES}, "an image, or a target and a start"),
            ({"image": None, "target": IMAGES, "start": IMAGES}, r"a target \[3, 24\] at 'first': got \[3, 4, 3, 2\]"),
            ({"model": Linear(Q).train()}, r"training mode .* call eval\(\) first"),
            ({"model": Function(lambda x: x.flatten(1).sum(1)), "at": ""}, r"\[3, ...\] at '': got \[3\]"),
        )
    ],
    "classes to draw": [
        (partial(inversion.generate, **{"model": small_vit(), "class_index": 1} | change), said) for change, said in (
            ({"class_index": 10}, r"classes below 10: got \[10\]"),
            ({"class_index": [3, -1]}, r"got \[3, -1\]"),
            ({"method": "source", "jitter": 4, "jitter_step": 4}, "got 4 and 4"),
            ({"model": FLAT, "class_index": [1, 0], "size": (1, 2, 1)}, "does not depend"),
            ({"model": FLAT}, r"width\), as .*: got \(0, 0, 0\)"),
            ({"model": minivit.create("vit_8px")}, r"call eval\(\) first"),
        )
    ],
    "drawings to recognise": [
        (partial(inversion.recognise, pictures, asked, {"d": of}), said) for pictures, asked, of, said in (
            (BYTES, 1, small_vit(), "expected d.preprocess"),
            (BYTES, 12, DIGITS, "the 10 classes of d: got .12, 12"),
            (BYTES, 1, minivit.load("digits_vit").train(), "d is in training mode"),
        )
    ],
    "figures": [
        (lambda: figures.heat(torch.ones(5), (2, 3), (4, 6)), "got 5 values"),
        *((lambda q=q: overlay(torch.ones(3, 4, 6), torch.ones(6), (2, 3), query=q), f"query.*: got {q}") for q in (-1, 6, 1.5)),
        (lambda: watched(query=(8, 0)), r"a patch of 8 x 8: got \(8, 0\)"),
        (lambda: watched(block=2), IndexError, "one of 2 blocks: got block=2"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_nothing_is_made_for_is_refused_with_what_was_given(what):
    assert_refused(REFUSED[what])
