"""Outputs and attention weights put into everybody's models, against the same models by hand."""

import threading
from functools import partial

import pytest
import torch
from torch import nn

import minivit
from minivit.recording import record
from minivit.replacing import replace
from tests.minivit import test_recording_attention as everybody
from tests.minivit.test_recording import Gives, is_clean
from tests.minivit.test_recording_threads import THREADS, in_threads, model_of, picture
from tests.refusals import assert_refused, unchecked
from tests.vitlab.instruments.models import MODELS, Known, everybodys
from tests.vitlab.instruments.models import images as pictures_of
from vitlab.instruments import rollout


def logits(output):
    return getattr(output, "logits", output)


@pytest.mark.parametrize("name", MODELS)
def test_a_block_patched_from_other_images_gives_their_answer(name):
    model, pictures, _ = everybodys(name)
    block = MODELS[name][1].format(0)
    with record(model, block) as seen:
        known = logits(model(pictures))
    with replace(model, {block: seen[block].flip(0)}):
        patched = logits(model(pictures))
    torch.testing.assert_close(patched, known.flip(0))
    with replace(model, {block: seen[block][:1]}):  # the same for every image
        torch.testing.assert_close(logits(model(pictures)), known[:1].expand(2, -1))
    assert not torch.allclose(known[0], known[1]) and is_clean(model)
    torch.testing.assert_close(logits(model(pictures)), known)


@everybody.every_model
def test_uniform_weights_are_those_of_queries_and_keys_of_zero(name):
    model, images, module, maps = everybody.setup(name)
    with record(model, module.format("*") + ".weights") as seen, torch.no_grad():
        plain = everybody.logits(model(images))
    tokens = seen[module.format(0) + ".weights"].shape[-1]
    uniform = torch.full((1, everybody.HEADS, tokens, tokens), 1 / tokens, dtype=images.dtype)
    with torch.no_grad():
        with replace(model, seen):  # its own
            everybody.close(everybody.logits(model(images)), plain, 1e-6)
        with replace(model, {module.format(1) + ".weights": uniform}):
            found = everybody.logits(model(images))
        for part in maps(model.get_submodule(module.format(1))):
            part.zero_()
        everybody.close(found, everybody.logits(model(images)), 1e-6)
    assert (found - plain).abs().max() > 1e-3


@everybody.every_model
def test_records_inside_and_outside_see_the_weights_that_are_put_in(name):
    model, images, module, _ = everybody.setup(name)
    key = module.format(1) + ".weights"
    with record(model, key) as before:
        plain = everybody.logits(model(images))
    with (
        record(model, key) as outer,
        replace(model, {key: lambda w: w.flip(0)}),
        record(model, key) as inner,
        replace(model, {key: lambda w: 2 * w}),
    ):
        found = everybody.logits(model(images))
    for seen in outer, inner:
        everybody.close(seen[key], 2 * before[key].flip(0), 1e-12)
    (gradient,) = torch.autograd.grad(found[0, 1], outer[key])
    assert gradient.abs().max() > 0
    everybody.close(everybody.logits(model(images)), plain, 1e-12)
    assert is_clean(model)


def test_records_inside_and_outside_see_the_output_that_is_put_in(net, x):
    tokens = torch.ones(2, 4).double()
    with (
        record(net, "blocks.3", "head") as outer,
        replace(net, {"blocks.3": tokens}),
        record(net, "blocks.3") as inner,
    ):
        y = net(x)
    assert torch.equal(outer["blocks.3"], tokens) and inner["blocks.3"] is outer["blocks.3"]
    for block in net.blocks[4:]:
        tokens = block(tokens)
    assert torch.equal(y, net.head(tokens)) and outer["head"] is y


def test_gradients_flow_through_what_is_given(net, x):
    with record(net, "blocks.9") as seen:
        (known,) = torch.autograd.grad(net(x)[0, 1], seen["blocks.9"])
    tokens = seen["blocks.9"].detach().requires_grad_()
    with replace(net, {"blocks.9": tokens}):
        y = net(torch.zeros_like(x))[0, 1]
    assert torch.equal(torch.autograd.grad(y, tokens)[0], known)


def test_the_last_and_the_innermost_decide_and_each_sees_what_is_left(net, x):
    twice = {"blocks.1*": lambda y: y + 1, "blocks.10": lambda y: 3 * y}
    with record(net, "blocks.10") as plain:
        net(x)
    outer, inner = {"blocks.10": lambda y: 2 * y}, {"blocks.10": lambda y: y + 1}
    with replace(net, outer), replace(net, inner), record(net, "blocks.10") as seen:
        net(x)
    assert torch.equal(seen["blocks.10"], 2 * plain["blocks.10"] + 1)
    with record(net, "blocks.9") as below, replace(net, twice), record(net, "blocks.10") as seen:
        net(x)
    with replace(net, {"blocks.10.*": lambda y: y + 1}):
        block = net.blocks[10](below["blocks.9"])
    assert torch.equal(seen["blocks.10"], 3 * (block + 1))


def test_a_wildcard_reaches_all_that_run_and_each_module_once(net, x):
    with replace(net, {"blocks.*.mlp": torch.zeros_like}):
        assert torch.equal(net(x), net.head(x))
    same = nn.Tanh()
    model, count = nn.Sequential(same, same), []
    with replace(model, {"[01]": lambda y: count.append(y) or y + 1}):
        y = model(x)
    assert torch.equal(y, (x.tanh() + 1).tanh() + 1) and len(count) == 2


def test_the_only_tensor_is_replaced_where_it_stands_and_several_by_what_is_like_them(x):
    for give, take in [
        (lambda x: (x, None), lambda y: y[0]),
        (lambda x: {"a": [x, 1]}, lambda y: y["a"][0]),
    ]:
        model = nn.Sequential(Gives(give), Gives(take))
        with replace(model, {"0": x + 1}):
            assert torch.equal(model(x), x + 1)
    model = nn.Sequential(Gives(lambda x: (x, 2 * x)), Gives(lambda y: y[0] - y[1]))
    with replace(model, {"0": (x, x)}):
        assert model(x).abs().max() == 0
    with replace(model, {"0": lambda y: (y[1], y[0])}):
        assert torch.equal(model(x), x)


def test_the_model_does_not_change_what_it_is_given(x):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)).double()
    given = -torch.ones(1, 4, requires_grad=True)  # of another type
    with replace(model, {"0": given}):
        y = model(x)
    assert torch.equal(given, -torch.ones(1, 4)) and y.dtype == torch.float64
    assert y.shape == (2, 4) and y.abs().max() == 0


def test_what_a_function_gives_may_have_another_shape():
    model, pictures, _ = everybodys("minivit mean")
    with replace(model, {"blocks.1": lambda y: y[:, :1]}), record(model, "blocks.1") as seen:
        y = model(pictures)
    torch.testing.assert_close(y, model.head(model.norm(seen["blocks.1"])[:, 0]))


@pytest.mark.parametrize("in_place", [pytest.param(False, marks=pytest.mark.full), True])
def test_compiled_models_take_what_is_put_in(in_place):
    model, images, _, _ = everybody.setup("minivit")
    with unchecked(), torch.no_grad():  # the compiler would trace the checks
        with replace(model, {"blocks.1": lambda y: 2 * y}):
            known = model(images)
        compiled = model if in_place else torch.compile(model, backend="eager")
        if in_place:
            model.compile(backend="eager")
        plain = compiled(images)
        with replace(compiled, {"blocks.1": lambda y: 2 * y}):
            everybody.close(compiled(images), known, 1e-12)
        assert torch.equal(compiled(images), plain)


def test_torchs_encoder_leaves_its_fast_path():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = everybody.randomized(nn.TransformerEncoder(layer, 2)).requires_grad_(False)
    (x,) = everybody.tensors((2, 7, 8))
    zeros = torch.zeros_like
    with torch.no_grad(), replace(encoder, {"layers.1.self_attn.weights": zeros}):
        found = encoder(x)
    encoder.layers[1].self_attn.in_proj_weight[16:] = 0  # values
    encoder.layers[1].self_attn.in_proj_bias[16:] = 0
    everybody.close(found, encoder(x), 1e-12)


def test_every_thread_puts_in_its_own_and_others_run_on():
    model = model_of("minivit")
    given = [torch.full((1, 5, 8), float(i)) for i in range(THREADS)]
    weights = torch.full((1, 2, 5, 5), 0.2)

    def answers(i):
        values = {"blocks.0": given[i], "blocks.1.attention.weights": weights * i}
        with torch.no_grad(), replace(model, values if i else {"": lambda y: y}):
            return model(picture(i))

    alone = [answers(i) for i in range(THREADS)]

    def wrong(i):
        return sum(not answers(i).equal(alone[i]) for _ in range(10))

    assert in_threads(wrong) == [0] * THREADS
    said = r"never ran.*\['blocks.0'\].*in this thread"
    with pytest.raises(RuntimeError, match=said), replace(model, {"blocks.0": given[0]}):
        other = threading.Thread(target=lambda: model(picture(1)))
        other.start()
        other.join()
    assert is_clean(model)


def test_instruments_see_what_is_put_in():
    one, other = torch.eye(12)[None], torch.eye(12).roll(1, 0)[None]
    model = Known(one, one)
    with replace(model, {"blocks.0.weights": other[None]}):
        found = rollout(model, pictures_of(), identity=0)
    assert torch.equal(found.matrices[1, 0], other[0].double())


def run(model, values, x):
    with replace(model, values):
        model(x)


def test_what_cannot_be_replaced_is_refused(net, x):
    attention, scores = nn.Sequential(nn.Softmax(-1)), torch.rand(2, 3, 5, 5)
    case = partial(partial, run)
    assert_refused([
        (case(net, {}, x), ValueError, "name what to replace"),
        (case(net, {"head", "blocks.0"}, x), TypeError, "expected {'blocks.2': tokens}: got set"),
        (case(net, {"block.3": x}, x), LookupError, "no module matches 'block.3'.*'blocks.3'"),
        (case(torch.ones(3), {"head": x}, x), TypeError, "expected an nn.Module: got Tensor"),
        (case(nn.DataParallel(net), {"": x}, x), TypeError, "inside DataParallel"),
        (case(net, {"unused": x}, x), RuntimeError, r"never ran inside the block: \['unused'\]"),
        (case(net, {"head.weights": x}, x), RuntimeError, r"no attention weights were computed for \['head.weights'\]"),
        (case(net, {"blocks.3": x[:, :3]}, x), ValueError, r"for 'blocks.3' a tensor \[2, 4\], or a batch of one for every image: got \[2, 3\]"),
        (case(net, {"blocks.3": lambda y: None}, x), TypeError, "for 'blocks.3' as many tensors as it gives, 1: got 0, in NoneType from the function"),
        (case(net, {"blocks.3": (x, x)}, x), TypeError, "got 2, in tuple$"),
        (case(attention, {"0.weights": torch.ones(1, 1, 5, 5)}, scores), ValueError, r"for '0.weights' a tensor \[2, 3, 5, 5\]"),
        (case(attention, {"0.weights": scores[0]}, scores[0]), RuntimeError, "heads and images cannot be told apart"),
    ])  # fmt: skip
    assert is_clean(net)


def test_an_exception_in_the_block_is_what_the_user_sees(net, x):
    with pytest.raises(ZeroDivisionError), replace(net, {"head": x, "unused": x}):
        raise ZeroDivisionError
    assert is_clean(net)


def test_a_copy_that_runs_in_the_block_is_the_model_itself():
    model = minivit.create("vit_8px", depth=2).eval()
    model.head.bias.data[3] = 1
    x = torch.rand(1, 1, 8, 8)
    with replace(model, {"": torch.zeros_like}):
        assert model(x).abs().max() == 0
        assert minivit.remove(model, "mlp")(x)[0, 3] == 1
