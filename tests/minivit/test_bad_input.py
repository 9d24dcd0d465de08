"""What a model is not made for is refused with one error: what was given, what was expected."""

import pytest
import torch

import minivit
from minivit.parts import ConvStem, local_mask, window_mask
from minivit.patches import patchify, unpatchify
from minivit.positions import resample, sincos_1d, sincos_2d
from tests.refusals import assert_refused


def small(*shape, dtype=torch.float32, device="cpu", **changes):
    """The smallest model, run on images of this shape."""
    images = torch.zeros(shape, dtype=dtype, device=device)
    return minivit.create("vit_8px", **changes)(images)


def test_what_are_no_images_is_refused():
    cases = [
        (lambda: small(8, 8), r"\[8, 8\]"),
        (lambda: small(2, 3, 8, 8), r"\[2, 3, 8, 8\]"),
        (lambda: small(2, 1, 8, 9), "patches of 2 x 2 do not divide an image of 8 x 9"),
        (lambda: small(2, 1, 0, 8), "do not divide an image of 0 x 8"),
        (lambda: small(2, 1, 8, 8, dtype=torch.uint8), "torch.uint8 on cpu"),
        (lambda: small(2, 1, 8, 8, dtype=torch.float64), "torch.float64"),
        (lambda: small(2, 1, 8, 8, device="meta"), "torch.float32 on meta"),
        (lambda: small(2, 1, 8, 9, stem="conv"), "patches of 2 x 2 do not divide an image of 8 x 9"),
        (lambda: patchify(torch.zeros(1, 3, 8, 8), (3, 4)), "patches of 3 x 4 do not divide an image of 8 x 8"),
        (lambda: unpatchify(torch.zeros(1, 6, 12), (2, 2), 2), r"\[1, 6, 12\]"),
        (lambda: unpatchify(torch.zeros(1, 6, 13), (2, 3), 2), r"\[1, 6, 13\]"),
    ]  # fmt: skip
    assert_refused((call, ValueError, said) for call, said in cases)


def test_sizes_that_do_not_fit_are_refused():
    cases = [
        (lambda: small(heads=5), "dim=64, heads=5"),
        (lambda: small(heads=5, pool="attention"), "dim=64, heads=5"),
        (lambda: small(dim=0), "0"),
        (lambda: small(depth=2.5), "2.5"),
        (lambda: small(classes=-1), "-1"),
        (lambda: small(mlp_ratio=0), "0"),
        (lambda: small(image_size=9), "patches of 2 x 2 do not divide an image of 9 x 9"),
        (lambda: small(patch_size=0), "0"),
        (lambda: small(stem="conv", patch_size=(2, 4)), r"\(2, 4\)"),
        (lambda: ConvStem(6, 64), r"\(6, 6\)"),
        (lambda: ConvStem(16, 20), "dim=20"),
        (lambda: sincos_1d(4, 7), "dim=7"),
        (lambda: sincos_2d((2, 2), 6), "dim=6"),
        (lambda: resample(torch.zeros(7, 3), (2, 2), (4, 4)), r"\[7, 3\]"),
        (lambda: resample(torch.zeros(1, 4, 3), (2, 2), (4, 4)), r"\[1, 4, 3\]"),
    ]  # fmt: skip
    assert_refused((call, ValueError, said) for call, said in cases)


def test_choices_that_there_are_not_are_refused():
    cases = [
        (lambda: small(stem="convolution"), "'convolution'"),
        (lambda: small(pool="cls"), r"'cls'"),
        (lambda: small(positions="sincos"), "'sincos'"),
        (lambda: small(norm="rms"), "'rms'"),
        (lambda: small(window=2, local=3), "window=2, local=3"),
        (lambda: small(attention=False), r"attention=False. A part is taken out by minivit.remove\(model, 'attention'\)"),
        (lambda: small(norm="none"), r"norm='none'. A part is taken out by minivit.remove\(model, 'norm'\)"),
        (lambda: small(positions="none"), r"minivit.remove\(model, 'positions'\)"),
        (lambda: minivit.create("mixer_8px", residual=False), r"minivit.remove\(model, 'residual'\)"),
        (lambda: minivit.create("resnet_8px", residual="no"), "'no'"),
        (lambda: small(window=0), "0"),
        (lambda: window_mask((2, 2), 0), "0"),
        (lambda: window_mask((4, 4), 2, shift=2), "shift=2, window=2"),
        (lambda: small(window=1.5), "1.5"),
        (lambda: small(local="3"), "'3'"),
        (lambda: small(heads=True), "True"),
        (lambda: small(dropout=1.0), "1.0"),
        (lambda: small(dropout=float("nan")), "nan"),
        (lambda: small(stochastic_depth=7), "7"),
        (lambda: small(mlp_ratio=float("nan")), "nan"),
        (lambda: small(mlp_ratio=True), "True"),
        (lambda: small(image_size=True), "True"),
        (lambda: small(image_size=(8, True)), r"\(8, True\)"),
        (lambda: small(patch_size=True), "True"),
        (lambda: small(mlp_ratio="4"), "'4'"),
        (lambda: small(image_size=(8,)), r"\(8,\)"),
        (lambda: small(image_size=8.0), "8.0"),
        (lambda: small(image_size="8"), "'8'"),
        (lambda: minivit.Preprocess(8.0, 8), "8.0"),
        (lambda: minivit.Preprocess(8, 8, mean=0.5, std=0.5), "0.5, 0.5"),
        (lambda: minivit.create(None), "there is no model None: there are vit_b_16"),
        (lambda: window_mask((2, 2), -1), "-1"),
        (lambda: local_mask((2, 2), 4), "4"),
        (lambda: small(dropout=1.5), "1.5"),
        (lambda: small(attention_dropout=1.5), "1.5"),
        (lambda: small(stochastic_depth=-0.1), "-0"),
    ]  # fmt: skip
    assert_refused((call, ValueError, said) for call, said in cases)


def test_names_that_there_are_not_are_refused():
    cases = [
        (lambda: minivit.create("vit_b32"), "no model 'vit_b32': did you mean vit_b_32"),
        (lambda: minivit.create("resnet"), "no model 'resnet': did you mean resnet"),
        (lambda: minivit.create("xyz"), "no model 'xyz': there are vit_b_16, vit_b_32"),
        (lambda: minivit.create("vit_8px", num_classes=10), "no field 'num_classes': did you mean classes"),
        (lambda: minivit.create("vit_8px", xyz=10), "no field 'xyz': there are image_size, patch_size"),
    ]  # fmt: skip
    assert_refused((call, ValueError, said) for call, said in cases)


def test_autocast_takes_no_image_that_it_would_leave_in_float64():
    with (
        torch.autocast("cpu", torch.bfloat16),
        pytest.raises(ValueError, match="torch.float64"),
    ):
        small(2, 1, 8, 8, dtype=torch.float64)
