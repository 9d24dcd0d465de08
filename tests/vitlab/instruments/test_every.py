"""What holds for every instrument: batches, modes, compiled models, shapes, and what no one measures."""

from functools import partial

import matplotlib
import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError

import minivit
from tests.parity import draw
from tests.refusals import assert_refused, unchecked
from tests.vitlab.instruments.models import DEPTH, everybodys
from vitlab import instruments as analysis
from vitlab.calls import activation, sublayer
from vitlab.figures import attention_overlay, rollout_overlay
from vitlab.instruments.probes import ridge
from vitlab.inversion import invert

matplotlib.use("Agg")
BLOCK = f"blocks.{DEPTH - 1}"

# Of the model, images in one batch or several, and a class for each image.
LABELLED = {
    "deletion": lambda m, x, y: analysis.deletion_curves(m, x, torch.eye(12)[: len(y)], y, grid=(3, 4)).deletion,
    "heads": lambda m, x, y: analysis.head_importance(m, x, y).loss,
    "heads by mean": lambda m, x, y: analysis.head_importance(m, x, y, by="mean").loss,
    "branches": lambda m, x, y: analysis.branch_importance(m, x, y).loss,
    "branches by others": lambda m, x, y: analysis.branch_importance(m, x, y, by="resample").loss,
    "relevance": lambda m, x, y: analysis.relevance(m, x, y).matrices.movedim(1, 0),
    "saliency": analysis.saliency,
    "token ablation": analysis.token_ablation,
}  # fmt: skip
OF_IMAGES = LABELLED | {
    "distance": lambda m, x, y: analysis.attention_distance(m, x).pixels,
    "features": lambda m, x, y: analysis.feature_variance(m, x, BLOCK).values,
    "field": lambda m, x, y: analysis.receptive_field(m, x, BLOCK, channels=4).sensitivity,
    "layer frequencies": lambda m, x, y: analysis.layer_frequencies(m, x, BLOCK)[BLOCK].after.values,
    "lens": lambda m, x, y: analysis.logit_lens(m, x).logits,
    "lens of tokens": lambda m, x, y: analysis.logit_lens(m, x, every_token=True).logits,
    "mean attention": lambda m, x, y: torch.cat([*analysis.mean_attention(m, x).values()]),
    "norms": lambda m, x, y: analysis.token_norms(m, x).patches,
    "ratios": lambda m, x, y: analysis.branch_ratios(m, x).ratio,
    "response": lambda m, x, y: analysis.attention_response(m, x)[BLOCK].gain,
    "rollout": lambda m, x, y: analysis.rollout(m, x).matrices,
    "stream frequencies": lambda m, x, y: analysis.stream_frequencies(m, x)[f"{BLOCK}.mlp"].sum.values,
    "variance": lambda m, x, y: analysis.branch_variance(m, x).values,
}  # fmt: skip
OF_ONE_BATCH = {
    "activation": lambda m, x, y: activation(m, BLOCK)(x),
    "cka": lambda m, x, y: analysis.cka(m, x.repeat(3, 1, 1, 1), BLOCK, "patch_embed").values,
    "sublayer": lambda m, x, y: sublayer(m, BLOCK, x)[1],
    "invert": lambda m, x, y: invert(m, x, at=BLOCK, steps=2).feature_distance,
    "attention overlay": lambda m, x, y: drawn(attention_overlay(m, x[0])),
    "rollout overlay": lambda m, x, y: drawn(rollout_overlay(m, x[0])),
}


def drawn(figure):
    return torch.stack([torch.as_tensor(ax.images[1].get_array()) for ax in figure.axes])


def in_training():
    changes = {"image_size": (6, 8), "depth": DEPTH, "dropout": 0.3, "pool": "class"}
    return draw(minivit.create("vit_8px", **changes)).train()


@pytest.mark.parametrize("name", OF_IMAGES)
@unchecked()  # the lens gives a model's head tokens as if each were an image of a larger batch
def test_batches_do_not_matter_and_the_model_comes_back_as_it_was(name):
    model, x, classes = in_training(), torch.rand(5, 1, 6, 8), torch.arange(5)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    whole = OF_IMAGES[name](model, x, classes)
    torch.testing.assert_close(OF_IMAGES[name](model, iter(x.split(2)), classes), whole, rtol=1e-4, atol=1e-6)  # fmt: skip
    with torch.inference_mode():
        torch.testing.assert_close(OF_IMAGES[name](model, x + 0, classes), whole, rtol=1e-4, atol=1e-6)  # fmt: skip
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(module.training for module in model.modules()) and not x.requires_grad
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("name", OF_IMAGES | OF_ONE_BATCH)
def test_every_instrument_takes_the_names_of_what_was_compiled(name):
    model, pictures, _ = everybodys("timm")
    call, classes = (OF_IMAGES | OF_ONE_BATCH)[name], torch.tensor([1, 2])
    torch.manual_seed(0)
    known = call(model, pictures, classes)
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        compiled(pictures)  # so that what runs is compiled already, and would call no new hook
    torch.manual_seed(0)
    torch.testing.assert_close(call(compiled, pictures, classes), known)


def test_images_of_several_sizes_of_no_number_or_of_other_classes_are_refused():
    model, x, classes = in_training(), torch.rand(5, 1, 6, 8), torch.arange(5)
    images = [
        (x / 0, "finite real numbers as images"),
        (iter([x / 0]), "images of finite numbers"),
        (x.numpy(), r"as images: got ndarray float32 \[5, 1, 6, 8\]"),
        (x[0], r"\[batch, channels, height, width\] or an iterable of tensors as images: got Tensor"),
        (iter([]), "got none"),
        (x[:0], "got none"),
        (iter([x[:3], x[3:, :, :4]]), r"one size: got \[3, 1, 6, 8\] and \[2, 1, 4, 8\]"),
    ]  # fmt: skip
    wrong = [
        (torch.arange(6), r"that fits images \[5, 1, 6, 8\] as (classes|labels): got .*\[6\]"),
        (torch.arange(6, 11), r"a class below 10 for each of 5 images: got \[6, 7, 8, 9, 10\]"),
        (classes - 1, r"got \[-1, 0"),
        (classes / 2, r"a tensor \[batch\] \(integer\) or None as (classes|labels): got Tensor torch.float32"),
        (3, "got 3"),
    ]  # fmt: skip
    distance = partial(analysis.attention_distance, model)
    assert_refused((partial(distance, some), said) for some, said in images)
    for name in "saliency", "heads":
        assert_refused((partial(LABELLED[name], model, x, y), said) for y, said in wrong)
    distance = partial(distance, x)
    assert torch.equal(distance(batch_size=np.int64(2)).pixels, distance(batch_size=2).pixels)
    sizes = 0, -1, 1.5, True, "2"
    assert_refused((partial(distance, batch_size=n), f"batch_size.*: got {n!r}") for n in sizes)
    known = LABELLED["heads"](model, x, classes)
    for dtype in torch.uint8, torch.int32:  # which would be masks of a tensor
        assert torch.equal(LABELLED["heads"](model, x, classes.to(dtype)), known)


@pytest.mark.parametrize("name", OF_IMAGES)
def test_what_is_no_model_or_gives_no_numbers_is_refused(name):
    model, x, classes = in_training(), torch.rand(5, 1, 6, 8), torch.arange(5)
    broken, large = in_training(), x.clone()
    broken.head.bias.data[0] = torch.nan
    large[0, 0, 3, 3] = 1e30
    assert_refused((partial(OF_IMAGES[name], *given, classes), kind, said) for *given, kind, said in (
        (None, x, TypeError, "expected an nn.Module as model: got None"),
        (torch.nn.Linear, x, TypeError, "an nn.Module as model: got <class"),
        (model.state_dict(), x, TypeError, "an nn.Module as model: got OrderedDict"),
        (broken, x, ValueError, "expected ViT to give finite numbers"),
        (model, large, ValueError, "expected ViT to give finite numbers"),
    ))  # fmt: skip


def test_a_wrong_shape_is_caught_while_the_tests_run():
    x, y = torch.rand(5, 3), torch.rand(4, 2)
    with pytest.raises(TypeCheckError, match=r"ridge[\s\S]*rows=5"):
        ridge(x, y)  # not as many rows of targets as of features
    with pytest.raises(TypeCheckError, match="Ridge"):
        analysis.Ridge(torch.ones(3, 2), *torch.ones(2, 3), torch.ones(5, 3))
    with unchecked(), pytest.raises(ValueError, match=r"that fits x \[5, 3\] as y: got .*\[4, 2\]"):
        analysis.ridge(x, y)
