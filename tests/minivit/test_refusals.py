"""What a model is not made for is refused with one error that names what was given."""

from functools import partial

import pytest
import torch

import minivit
from minivit.hybrid import alternate
from minivit.parts import ConvStem, local_mask, window_mask
from minivit.patches import patchify, unpatchify
from minivit.positions import resample, sincos_1d, sincos_2d
from tests.refusals import unchecked


def run(name, *shape, dtype=torch.float32, device="cpu", **changes):
    """A model made under this name, run on images of this shape."""
    return minivit.create(name, **changes)(torch.zeros(shape, dtype=dtype, device=device))


Q, MASK = torch.ones(2, 5, 4), torch.ones(5, 5, dtype=torch.bool)
FUNCTIONS = [
    (lambda: run("vit_8px", 8, 8), r"\[8, 8\]"),
    (lambda: run("vit_8px", 2, 3, 8, 8), r"\[2, 3, 8, 8\]"),
    (lambda: run("vit_8px", 2, 1, 8, 9), "patches of 2 x 2 do not divide an image of 8 x 9"),
    (lambda: run("vit_8px", 2, 1, 0, 8), "do not divide an image of 0 x 8"),
    (lambda: run("vit_8px", 2, 1, 8, 8, dtype=torch.uint8), "torch.uint8 on cpu"),
    (lambda: run("vit_8px", 2, 1, 8, 8, device="meta"), "torch.float32 on meta"),
    (lambda: run("resnet_8px", 2, 3, 8, 8), r"\[2, 3, 8, 8\]"),
    (lambda: run("alternet_32px", 2, 1, 8, 8), r"\[2, 1, 8, 8\]"),
    (lambda: run("pit_32px", 1, 3, 9, 8), "an image of 9 x 8"),
    (lambda: run("mixer_8px", 1, 1, 4, 16), "4 x 16"),  # as many patches
    (lambda: patchify(torch.zeros(1, 3, 8, 8), (3, 4)), "patches of 3 x 4 do not divide an image of 8 x 8"),
    (lambda: unpatchify(torch.zeros(1, 6, 12), (2, 2), 2), r"\[1, 6, 12\]"),
    (lambda: unpatchify(torch.zeros(1, 6, 13), (2, 3), 2), r"\[1, 6, 13\]"),
    (lambda: ConvStem(6, 64), r"\(6, 6\)"),
    (lambda: ConvStem(16, 20), "dim=20"),
    (lambda: sincos_1d(4, 7), "dim=7"),
    (lambda: sincos_2d((2, 2), 6), "dim=6"),
    (lambda: resample(torch.zeros(7, 3), (2, 2), (4, 4)), r"\[7, 3\]"),
    (lambda: window_mask((2, 2), 0), "0"),
    (lambda: window_mask((4, 4), 2, shift=2), "shift=2, window=2"),
    (lambda: local_mask((2, 2), 4), "4"),
    (lambda: alternate((2, 3), (0, 2)), r"\(0, 2\) of \(2, 3\)"),
    (lambda: minivit.MultiHeadAttention(12, 3)(torch.ones(2, 5, 12), torch.zeros(5, 5)), r"boolean mask.*: got torch.float32"),
    (lambda: minivit.load("digits_mixer", image_size=16), "a Mixer are for one number of tokens.*=16"),
    *((lambda k=k, v=v: minivit.scaled_dot_product_attention(Q, k, v), "queries, d.*keys, d.*got") for k, v in ((Q[..., 1:], Q), (Q, Q[:, 1:]))),
    *((lambda mask=mask: minivit.attention_weights(Q, Q, mask), f"boolean mask.*got {mask.dtype}") for mask in (MASK.long(), MASK[1:])),
]  # fmt: skip
CREATED = {
    "vit_8px": [
        ({"heads": 5}, "dim=64, heads=5"), ({"heads": True}, "True"), ({"dim": 0}, "0"), ({"depth": 2.5}, "2.5"),
        ({"mlp_ratio": 0}, "0"), ({"mlp_ratio": float("nan")}, "nan"), ({"mlp_ratio": "4"}, "'4'"),
        ({"image_size": 9}, "an image of 9 x 9"), ({"image_size": (8,)}, r"\(8,\)"), ({"patch_size": 0}, "0"),
        ({"pool": "cls"}, "'cls'"), ({"local": "3"}, "'3'"), ({"dropout": 1.0}, "1.0"),
        ({"window": 2, "local": 3}, "window=2, local=3"),
        ({"num_classes": 10}, "'num_classes'.*did you mean classes"),
        ({"attention": False}, r"attention=False.* minivit.remove\(model, 'attention'\)"),
        ({"positions": "none"}, r"minivit.remove\(model, 'positions'\)"),
    ],
    "vit_32px": [
        ({"registers": 2, "window": 2}, "in no window"), ({"registers": 2, "positions": "sincos2d"}, "positions='sincos2d'"),
        ({"embedding_norm": True, "positions": "sincos1d"}, "positions='sincos1d'"), ({"registers": 0}, "registers: got 0"),
        ({"norm_after_pool": True, "pool": "class"}, "got pool='class', norm='pre'"), ({"pool": "class+register"}, "registers=None"),
        ({"norm_after_pool": True, "pool": "mean", "norm": "post"}, "norm='post'"),
        ({"activation": "swiglu", "pool": "attention"}, "activation='swiglu'"),
    ],
    "mixer_8px": [
        ({"residual": False}, r"minivit.remove\(model, 'residual'\)"), ({"mlp_ratio": 0.001}, "0.001"),
        ({"heads": 4}, "a Mixer has no field 'heads': there are image_size"),
    ],
    "resnet_8px": [({"residual": "no"}, "'no'"), ({"stages": ()}, r"\(\)"), ({"stages": (2, True)}, r"\(2, True\)")],
    "alternet_32px": [
        ({"stages": ("cc", "cx", "ca")}, "'cx'"), ({"stages": ("cc", "ct", "ca")}, "'ct'"),
        ({"stages": ("cc", "", "ca")}, "''"), ({"stages": "cccaca"}, "'cccaca'"), ({"widths": 32}, "32"),
        ({"stages": ("cc", "tt", "ca")}, r"\('cc', 'tt', 'ca'\)"), ({"heads": (2, 4, 5)}, r"\(2, 4, 5\)"),
        ({"stages": ("cc", "ca")}, r"\(32, 64, 128\)"), ({"stem": "patch"}, "stem='patch'"),
        ({"patch_size": 2}, "patch_size=2"), ({"window": 2, "stages": ("cc", "cc", "cc")}, "window=2"),
    ],
    "pit_32px": [
        ({"widths": (48, 96, 100), "heads": (3, 6, 10)}, r"\(48, 96, 100\)"),
        ({"image_size": 33}, "an image of 33 x 33"), ({"window": 2}, "window=2"),
    ],
    "vit_b32": [({}, "no model 'vit_b32': did you mean vit_b_32")],
    None: [({}, "there is no model None: there are vit_b_16")],
}  # fmt: skip
CREATIONS = [(partial(minivit.create, name, **changes), value)
             for name, cases in CREATED.items() for changes, value in cases]  # fmt: skip


@pytest.mark.parametrize(("call", "value"), [*FUNCTIONS, *CREATIONS])
def test_bad_input_is_refused_with_what_was_given(call, value):
    with unchecked(), pytest.raises(ValueError, match=value):
        call()


def test_autocast_may_cast_images_but_neither_float64_nor_integers():
    with torch.autocast("cpu", torch.bfloat16):
        assert run("vit_8px", 1, 1, 8, 8).dtype == torch.bfloat16
        for dtype in torch.float64, torch.uint8:
            with unchecked(), pytest.raises(ValueError, match=str(dtype)):
                run("vit_8px", 2, 1, 8, 8, dtype=dtype)
