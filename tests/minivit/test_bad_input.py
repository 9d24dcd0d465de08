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
        (lambda: small(8, 8), r"images \[batch, 1, height, width\]: got \[8, 8\]"),
        (lambda: small(2, 3, 8, 8), r"\[batch, 1, height, width\]: got \[2, 3, 8, 8\]"),
        (lambda: small(2, 1, 8, 9), "patches of 2 x 2 do not divide an image of 8 x 9"),
        (lambda: small(2, 1, 0, 8), "do not divide an image of 0 x 8"),
        (lambda: small(2, 1, 8, 8, dtype=torch.uint8), "expected images of torch.float32 on cpu.* got torch.uint8 on cpu"),
        (lambda: small(2, 1, 8, 8, dtype=torch.float64), "got torch.float64"),
        (lambda: small(2, 1, 8, 8, device="meta"), "got torch.float32 on meta"),
        (lambda: small(2, 1, 8, 9, stem="conv"), "patches of 2 x 2 do not divide an image of 8 x 9"),
        (lambda: patchify(torch.zeros(1, 3, 8, 8), (3, 4)), "patches of 3 x 4 do not divide an image of 8 x 8"),
        (lambda: unpatchify(torch.zeros(1, 6, 12), (2, 2), 2), r"needs \[batch, 4, channels \* 4\]: got \[1, 6, 12\]"),
        (lambda: unpatchify(torch.zeros(1, 6, 13), (2, 3), 2), r"\[batch, 6, channels \* 4\]: got \[1, 6, 13\]"),
    ]  # fmt: skip
    assert_refused((call, ValueError, said) for call, said in cases)


def test_sizes_that_do_not_fit_are_refused():
    cases = [
        (lambda: small(heads=5), "heads must divide dim: got dim=64, heads=5"),
        (lambda: small(heads=5, pool="attention"), "heads must divide dim: got dim=64, heads=5"),
        (lambda: small(dim=0), "dim must be a positive integer: got 0"),
        (lambda: small(depth=2.5), "depth must be a positive integer: got 2.5"),
        (lambda: small(classes=-1), "classes must be a positive integer: got -1"),
        (lambda: small(mlp_ratio=0), "mlp_ratio .* got 0"),
        (lambda: small(image_size=9), "patches of 2 x 2 do not divide an image of 9 x 9"),
        (lambda: small(patch_size=0), "patch_size must be positive: got 0"),
        (lambda: small(stem="conv", patch_size=(2, 4)), r"power of two.* got \(2, 4\)"),
        (lambda: ConvStem(6, 64), r"power of two.* got \(6, 6\)"),
        (lambda: ConvStem(16, 20), "dim=20"),
        (lambda: sincos_1d(4, 7), "even: got dim=7"),
        (lambda: sincos_2d((2, 2), 6), "divisible by 4: got dim=6"),
        (lambda: resample(torch.zeros(7, 3), (2, 2), (4, 4)), r"2 x 2 must be \[4, dim\].*\[5, dim\]: got \[7, 3\]"),
        (lambda: resample(torch.zeros(1, 4, 3), (2, 2), (4, 4)), r"got \[1, 4, 3\]"),
    ]  # fmt: skip
    assert_refused((call, ValueError, said) for call, said in cases)


def test_choices_that_there_are_not_are_refused():
    cases = [
        (lambda: small(stem="convolution"), "patch or conv: got 'convolution'"),
        (lambda: small(pool="cls"), r"class, mean, attention, class\+mean or class\+register: got 'cls'"),
        (lambda: small(positions="sincos"), "learned, sincos1d or sincos2d: got 'sincos'"),
        (lambda: small(norm="rms"), "norm is pre or post: got 'rms'"),
        (lambda: small(window=2, local=3), "got window=2 and local=3"),
        (lambda: small(attention=False), r"got attention=False. A part is taken out by minivit.remove\(model, 'attention'\)"),
        (lambda: small(norm="none"), r"got norm='none'. A part is taken out by minivit.remove\(model, 'norm'\)"),
        (lambda: small(positions="none"), r"minivit.remove\(model, 'positions'\)"),
        (lambda: minivit.create("mixer_8px", residual=False), r"minivit.remove\(model, 'residual'\)"),
        (lambda: minivit.create("resnet_8px", residual="no"), "residual is true or false: got 'no'"),
        (lambda: small(window=0), "window must be a positive integer: got 0"),
        (lambda: window_mask((2, 2), 0), "at least 1: got 0"),
        (lambda: window_mask((4, 4), 2, shift=2), "smaller than the window: got 2, 2"),
        (lambda: small(window=1.5), "window must be a positive integer: got 1.5"),
        (lambda: small(local="3"), "local must be a positive integer: got '3'"),
        (lambda: small(heads=True), "heads must be a positive integer: got True"),
        (lambda: small(dropout=1.0), "dropout must be at least 0 and below 1: got 1.0"),
        (lambda: small(dropout=float("nan")), "dropout must be at least 0 and below 1: got nan"),
        (lambda: small(stochastic_depth=7), "stochastic_depth must be at least 0 and below 1: got 7"),
        (lambda: small(mlp_ratio=float("nan")), "mlp_ratio must be positive: got nan"),
        (lambda: small(mlp_ratio=True), "mlp_ratio must be positive: got True"),
        (lambda: small(image_size=True), "a whole number, or two, height and width: got True"),
        (lambda: small(image_size=(8, True)), r"height and width: got \(8, True\)"),
        (lambda: small(patch_size=True), "height and width: got True"),
        (lambda: small(mlp_ratio="4"), "mlp_ratio must be positive: got '4'"),
        (lambda: small(image_size=(8,)), r"a whole number, or two, height and width: got \(8,\)"),
        (lambda: small(image_size=8.0), "a whole number, or two, height and width: got 8.0"),
        (lambda: small(image_size="8"), "a whole number, or two, height and width: got '8'"),
        (lambda: minivit.Preprocess(8.0, 8), "a whole number, or two, height and width: got 8.0"),
        (lambda: minivit.Preprocess(8, 8, mean=0.5, std=0.5), "mean and std must be tuples: got 0.5, 0.5"),
        (lambda: minivit.create(None), "there is no model None: there are vit_b_16"),
        (lambda: window_mask((2, 2), -1), "at least 1: got -1"),
        (lambda: local_mask((2, 2), 4), "odd side: got 4"),
        (lambda: small(dropout=1.5), "1.5"),
        (lambda: small(attention_dropout=1.5), "dropout .* got 1.5"),
        (lambda: small(stochastic_depth=-0.1), "below 1: got -0"),
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
        pytest.raises(ValueError, match="got torch.float64"),
    ):
        small(2, 1, 8, 8, dtype=torch.float64)
