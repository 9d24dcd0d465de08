import copy
from functools import partial

import pytest
import torch
from torch import nn
from torch.overrides import _get_current_function_mode

from minivit.recording import record
from tests.parity import Function
from tests.refusals import assert_refused


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(4), nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(11))
        self.unused, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def is_clean(model):
    """Nothing of a recording is left behind."""
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    always = [len(m._forward_hooks_always_called) for m in model.modules()]
    return not any(hooks + always) and _get_current_function_mode() is None


def test_what_is_recorded_is_what_the_modules_gave(net, x):
    with record(net, "blocks.3", "blocks.7.mlp", "blocks.10", "head", "") as seen:
        assert _get_current_function_mode() is None  # only attention weights need it
        y = net(x)
    expected = x
    for i, block in enumerate(net.blocks):
        if i == 7:
            assert torch.equal(seen["blocks.7.mlp"], block.mlp(block.norm(expected)))
        expected = block(expected)
        if i == 3:
            assert torch.equal(seen["blocks.3"], expected)
    assert list(seen) == ["blocks.3", "blocks.7.mlp", "blocks.10", "head", ""]  # as they ran
    assert seen["head"] is y and seen[""] is y
    assert torch.equal(y, net(x)) and is_clean(net)
    (gradient,) = torch.autograd.grad(y.sum(), seen["blocks.10"])
    assert torch.equal(gradient, net.head.weight.sum(0).expand(2, 4))


def test_names_are_shell_style_and_a_star_crosses_dots(net, x):
    fourth = ["blocks.4.norm", "blocks.4.mlp.0", "blocks.4.mlp.1", "blocks.4.mlp", "blocks.4"]
    for pattern, names in (
        ("blocks.3", ["blocks.3"]),
        ("blocks.1*.norm", ["blocks.1.norm", "blocks.10.norm"]),
        ("blocks.?", [f"blocks.{i}" for i in range(10)]),
        ("blocks.[24]", ["blocks.2", "blocks.4"]),
        ("blocks.4*", fourth),
    ):
        with record(net, pattern, detach=True) as seen:
            net(x)
        assert list(seen) == names
    with record(net, "*", detach=True) as seen:  # what a wildcard matches may stay idle
        net(x)
    assert "unused" not in seen and len(seen) == 1 + 11 * 5 + 1  # the model, five a block, the head
    net.weights = net.head  # a module of this name, not attention weights
    with record(net, "weights") as seen:
        y = net(x)
    assert seen["weights"] is y


def run(model, *names, call=None):
    with record(model, *names):
        (call or model)(torch.ones(2, 4).double())


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_what_cannot_be_recorded_is_refused(net):
    net.attention = nn.Identity()
    parallel = nn.Sequential(nn.DataParallel(Net()))
    scripted = nn.Sequential(torch.jit.script(nn.Linear(4, 4)))
    nothing, gives_none = (lambda x: None), Function(lambda x: None)
    assert_refused([
        (partial(run, net), ValueError, "name what to record"),
        (partial(run, net, ["head"]), TypeError, r"each an argument of its own: got \(\['head'\],\)"),
        (partial(run, torch.ones(3), "head"), TypeError, "expected an nn.Module: got Tensor"),
        (partial(run, parallel, "0"), TypeError, "inside DataParallel .module '0'.*the module it was made from"),
        (partial(run, scripted, "0"), TypeError, "inside RecursiveScriptModule .module '0'"),
        (partial(run, net, "head", "block.3"), LookupError, "no module matches 'block.3'.*'blocks.3'"),
        (partial(run, net, "blocks"), LookupError, "'blocks'.*'blocks.9'"),  # a list is never called
        (partial(run, net, "attn.weights"), LookupError, "'attn.weights'.*'attention.weights'"),
        (partial(run, Net(), "at.weights"), LookupError, "and nothing here looks like attention"),
        (partial(run, Net().double(), "head.weights"), RuntimeError, "what looks like attention here: nothing"),
        (partial(run, net, "head", "un*"), RuntimeError, r"never ran.*\['unused'\]"),
        (partial(run, net, "h*", "*", "unused"), RuntimeError, r"never ran.*\['unused'\]"),
        (partial(run, net, "head", call=nothing), RuntimeError, r"never ran.*\['head'\]"),
        (lambda: record(net, "head", detach="no").__enter__(), TypeError, "True or False as detach: got 'no'"),
        (partial(run, nn.Sequential(gives_none), "0"), RuntimeError, "module '0' gave no tensor: got NoneType"),
        (partial(run, net, "blocks.2.mlp.0", "head"), RuntimeError, r"\['blocks.2.mlp.0'\] were overwritten in place.*detach=True"),
    ])  # fmt: skip
    assert is_clean(net) and is_clean(gives_none)


def test_an_exception_in_the_block_is_what_the_user_sees_and_may_be_caught(net, x):
    with pytest.raises(ZeroDivisionError), record(net, "head", "unused"):
        raise ZeroDivisionError
    with record(net, "head") as seen:
        with pytest.raises(RuntimeError):
            net(x[:, :3])
        y = net(x)
    assert seen["head"] is y and is_clean(net)


def test_the_last_of_several_calls_is_kept_under_each_name_of_the_module(net, x):
    with record(net, "head") as seen:
        first, last = net(x), net(-x)
    assert seen["head"] is last and not torch.equal(first, last)
    twice = nn.Linear(4, 4).double()
    with record(nn.Sequential(twice, nn.Tanh(), twice), "[02]") as seen:
        y = nn.Sequential(twice, nn.Tanh(), twice)(x)
    assert seen["0"] is y and seen["2"] is y


def test_detached_records_are_copies_without_gradients_and_so_are_those_of_inference(net, x):
    with record(net, "blocks.2.mlp.0", "head", detach=True) as seen:
        y = net(x)
    assert not seen["head"].requires_grad and torch.equal(seen["head"], y)
    y.data.zero_()
    assert seen["head"].abs().max() > 0.1
    assert (seen["blocks.2.mlp.0"] < 0).any()  # the ReLU behind it works in place
    with torch.inference_mode(), record(net, "blocks.2.mlp.0") as seen:  # counts no changes
        net(x)
    assert (seen["blocks.2.mlp.0"] < 0).any()


@pytest.mark.parametrize("detach", [False, True])
def test_the_only_tensor_of_a_result_is_taken_out_of_it(x, detach):
    for function in lambda x: (x, None), lambda x: {"a": [x]}, lambda x: [1, (x,)]:
        with record(model := Function(function), "", detach=detach) as seen:
            model(x)
        assert torch.equal(seen[""], x) and (seen[""] is not x) == detach
    with record(model := Function(lambda x: (x, x + 1)), "", detach=detach) as seen:
        pair = model(x)
    assert isinstance(seen[""], tuple)
    for a, b in zip(seen[""], pair, strict=True):
        assert torch.equal(a, b) and (a is not b) == detach


def test_a_copy_made_in_the_block_does_not_write_into_the_record(net, x):
    with record(net, "head", "") as seen:
        y = net(x)
        copied = copy.deepcopy(net)
        copied(-x)
        assert seen["head"] is y and seen[""] is y
    copied(-x)
    assert seen["head"] is y and seen[""] is y
