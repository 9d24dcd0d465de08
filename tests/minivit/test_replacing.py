"""Attention weights and outputs put into models, against the same models by hand."""

from functools import partial

import torch
from torch import nn

from minivit import record, replace
from tests.minivit.test_recording import is_clean
from tests.minivit.test_recording_attention import close, every_model, setup
from tests.parity import Function, given
from tests.refusals import assert_refused


@every_model
def test_records_inside_and_outside_see_the_weights_that_are_put_in(name):
    model, images, names, _ = setup(name)
    key = f"{names[1]}.weights"
    with record(model, key) as before:
        plain = given(model(images))
    with (
        record(model, key) as outer,
        replace(model, {key: lambda w: w.flip(0)}),
        record(model, key) as inner,
        replace(model, {key: lambda w: 2 * w}),
    ):
        found = given(model(images))
    for seen in outer, inner:
        close(seen[key], 2 * before[key].flip(0), 1e-12)
    (gradient,) = torch.autograd.grad(found[0, 1], outer[key])
    assert gradient.abs().max() > 0
    close(given(model(images)), plain, 1e-12)
    assert is_clean(model)


def test_records_inside_and_outside_see_the_output_that_is_put_in_and_gradients_flow(net, x):
    tokens = torch.ones(2, 4, dtype=torch.float64, requires_grad=True)
    with (
        record(net, "blocks.3", "head") as outer,
        replace(net, {"blocks.3": tokens}),
        record(net, "blocks.3") as inner,
    ):
        y = net(x)
    assert torch.equal(outer["blocks.3"], tokens) and inner["blocks.3"] is outer["blocks.3"]
    by_hand = net.head(nn.Sequential(*net.blocks[4:])(tokens))
    assert torch.equal(y, by_hand) and outer["head"] is y
    gradients = [torch.autograd.grad(z[0, 1], tokens)[0] for z in (y, by_hand)]
    assert torch.equal(*gradients) and gradients[0].any()


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
        model = nn.Sequential(Function(give), Function(take))
        with replace(model, {"0": x + 1}):
            assert torch.equal(model(x), x + 1)
    model = nn.Sequential(Function(lambda x: (x, 2 * x)), Function(lambda y: y[0] - y[1]))
    with replace(model, {"0": (x, x)}):
        assert model(x).abs().max() == 0
    with replace(model, {"0": lambda y: (y[1], y[0])}):
        assert torch.equal(model(x), x)


def test_the_model_does_not_change_what_it_is_given_and_a_function_may_change_the_shape(net, x):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)).double()
    value = -torch.ones(1, 4, requires_grad=True)  # of another type
    with replace(model, {"0": value}):
        y = model(x)
    assert torch.equal(value, -torch.ones(1, 4)) and y.dtype == torch.float64
    assert y.shape == (2, 4) and y.abs().max() == 0
    with replace(net, {"blocks.10": lambda y: y[:1]}):
        assert net(x).shape == (1, 3)


def run(model, values, x):
    with replace(model, values):
        model(x)


def test_what_cannot_be_replaced_is_refused(net, x):
    attention, scores = nn.Sequential(nn.Softmax(-1)), torch.rand(2, 3, 5, 5)
    case = partial(partial, run)
    assert_refused([
        (case(net, {}, x), ValueError, "name what to replace"),
        (case(net, {"head", "blocks.0"}, x), TypeError, "expected {'blocks.2': tokens}: got set"),
        (case(net, {"unused": x}, x), RuntimeError, r"never ran inside the block: \['unused'\]"),
        (case(net, {"blocks.3": x[:, :3]}, x), ValueError, r"for 'blocks.3' a tensor \[2, 4\], or a batch of one for every image: got \[2, 3\]"),
        (case(net, {"blocks.3": lambda y: None}, x), TypeError, "for 'blocks.3' as many tensors as it gives, 1: got 0, in NoneType from the function"),
        (case(net, {"blocks.3": (x, x)}, x), TypeError, "got 2, in tuple$"),
        (case(attention, {"0.weights": torch.ones(1, 1, 5, 5)}, scores), ValueError, r"for '0.weights' a tensor \[2, 3, 5, 5\]"),
        (case(attention, {"0.weights": scores[0]}, scores[0]), RuntimeError, "heads and images cannot be told apart"),
        (case(net, {"head": lambda y: 1 / 0, "unused": x}, x), ZeroDivisionError, ""),  # what the block raises
    ])  # fmt: skip
    assert is_clean(net)
