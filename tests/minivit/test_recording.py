import copy

import pytest
import torch
from torch import nn
from torch.overrides import _get_current_function_mode

from minivit.recording import record


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


class Gives(nn.Module):
    """A module that gives whatever it was made to give."""

    def __init__(self, give):
        super().__init__()
        self.inner, self.give = nn.Identity(), give

    def forward(self, x):
        return self.give(self.inner(x))


def is_clean(model):
    """Nothing of a recording is left behind."""
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    always = [len(m._forward_hooks_always_called) for m in model.modules()]
    return not any(hooks + always) and _get_current_function_mode() is None


def test_what_is_recorded_is_what_the_modules_gave(net, x):
    with record(net, "blocks.3", "blocks.7.mlp", "head", "") as seen:
        assert _get_current_function_mode() is None  # only attention weights need it
        y = net(x)
    expected = x
    for i, block in enumerate(net.blocks):
        if i == 7:
            assert torch.equal(seen["blocks.7.mlp"], block.mlp(block.norm(expected)))
        expected = block(expected)
        if i == 3:
            assert torch.equal(seen["blocks.3"], expected)
    assert list(seen) == ["blocks.3", "blocks.7.mlp", "head", ""]  # as they ran
    assert seen["head"] is y and seen[""] is y
    assert torch.equal(y, net(x)) and is_clean(net)


def test_gradients_flow_through_what_is_recorded(net, x):
    with record(net, "blocks.10") as seen:
        y = net(x)
    (gradient,) = torch.autograd.grad(y.sum(), seen["blocks.10"])
    assert torch.equal(gradient, net.head.weight.sum(0).expand(2, 4))


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("blocks.3", ["blocks.3"]),
        ("blocks.1*.norm", ["blocks.1.norm", "blocks.10.norm"]),
        ("blocks.?", [f"blocks.{i}" for i in range(10)]),
        ("blocks.[24]", ["blocks.2", "blocks.4"]),
        ("blocks.4*", ["blocks.4.norm", "blocks.4.mlp.0", "blocks.4.mlp.1", "blocks.4.mlp", "blocks.4"]),
    ],
)  # fmt: skip
def test_names_are_shell_style_and_a_star_crosses_dots(net, x, pattern, names):
    with record(net, pattern, detach=True) as seen:
        net(x)
    assert list(seen) == names


def test_a_module_that_is_called_weights_is_a_module(x):
    model = nn.Sequential()
    model.weights = nn.Identity()
    with record(model, "weights") as seen:
        model(x)
    assert seen["weights"] is x


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("block.3", "blocks.3"),
        ("Head", "head"),
        ("blocks", "blocks.9"),  # a list of modules is never called
        ("attn.weights", "attention.weights"),
    ],
)
def test_a_name_that_matches_nothing_is_refused_with_near_names(net, name, near):
    net.attention = nn.Identity()
    with (
        pytest.raises(LookupError, match=f"no module matches '{name}'.*'{near}'"),
        record(net, "head", name),
    ):
        pass
    assert is_clean(net)


@pytest.mark.parametrize(
    ("make", "names", "error", "said"),
    [
        (lambda: Net(), [], ValueError, "name what to record"),
        (lambda: Net(), [["head"]], TypeError, r"each an argument of its own: got \(\['head'\],\)"),
        (lambda: torch.ones(3), ["head"], TypeError, "expected an nn.Module: got Tensor"),
        (lambda: nn.Sequential(nn.DataParallel(Net())), ["0"], TypeError, "inside DataParallel .module '0'.*the module it was made from"),
        (lambda: nn.Sequential(torch.jit.script(nn.Linear(4, 4))), ["0"], TypeError, "inside RecursiveScriptModule .module '0'"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_what_cannot_be_recorded_is_refused(make, names, error, said):
    model = make()
    with pytest.raises(error, match=said), record(model, *names):
        pass


def test_a_module_that_never_ran_is_an_error_that_names_it(net, x):
    with pytest.raises(RuntimeError, match=r"never ran.*\['unused'\]"), record(net, "head", "un*"):
        net(x)
    with pytest.raises(RuntimeError, match=r"never ran.*\['head'\]"), record(net, "head"):
        pass
    assert is_clean(net)


def test_an_exception_in_the_block_is_what_the_user_sees(net):
    with pytest.raises(ZeroDivisionError), record(net, "head", "unused"):
        raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), record(net, "head"):
        net.head(torch.ones(2, 5, dtype=torch.float64))
    assert is_clean(net)


def test_recording_goes_on_after_an_exception_that_the_block_catches(net, x):
    with record(net, "head") as seen:
        with pytest.raises(RuntimeError):
            net(x[:, :3])
        y = net(x)
    assert seen["head"] is y


def test_several_passes_keep_the_last(net, x):
    with record(net, "head") as seen:
        first, last = net(x), net(-x)
    assert seen["head"] is last and not torch.equal(first, last)


def test_a_module_used_twice_keeps_what_it_gave_last_under_each_of_its_names(x):
    twice = nn.Linear(4, 4).double()
    with record(nn.Sequential(twice, nn.Tanh(), twice), "[02]") as seen:
        y = nn.Sequential(twice, nn.Tanh(), twice)(x)
    assert seen["0"] is y and seen["2"] is y


def test_nested_records_of_one_model_get_their_own(net, x):
    with record(net, "head", "blocks.0") as outer:
        with record(net, "head", "blocks.1", detach=True) as inner:
            y = net(x)
        assert list(inner) == ["blocks.1", "head"]
        z = net(-x)
    assert torch.equal(inner["head"], y) and not inner["head"].requires_grad
    assert outer["head"] is z and list(outer) == ["blocks.0", "head"]
    assert is_clean(net)


def test_detached_records_are_copies_without_gradients(net, x):
    with record(net, "blocks.2.mlp.0", "head", detach=True) as seen:
        y = net(x)
    assert not seen["head"].requires_grad and torch.equal(seen["head"], y)
    y.data.zero_()
    assert seen["head"].abs().max() > 0.1
    assert (seen["blocks.2.mlp.0"] < 0).any()  # the ReLU behind it works in place


def test_a_record_that_was_overwritten_in_place_is_an_error_and_not_another_tensor(net, x):
    said = r"\['blocks.2.mlp.0'\] were overwritten in place.*detach=True"
    with pytest.raises(RuntimeError, match=said), record(net, "blocks.2.mlp.0", "head"):
        net(x)
    with torch.inference_mode(), record(net, "blocks.2.mlp.0") as seen:  # counts no changes
        net(x)
    assert (seen["blocks.2.mlp.0"] < 0).any()


@pytest.mark.parametrize("detach", [False, True])
def test_the_only_tensor_of_a_result_is_taken_out_of_it(x, detach):
    for give in lambda x: (x, None), lambda x: {"a": [x]}, lambda x: [1, (x,)]:
        with record(model := Gives(give), "", detach=detach) as seen:
            model(x)
        assert torch.equal(seen[""], x) and (seen[""] is not x) == detach
    with record(model := Gives(lambda x: (x, x + 1)), "", detach=detach) as seen:
        given = model(x)
    assert isinstance(seen[""], tuple)
    for a, b in zip(seen[""], given, strict=True):
        assert torch.equal(a, b) and (a is not b) == detach


def test_a_result_without_a_tensor_is_an_error(x):
    model = nn.Sequential(Gives(lambda x: None))
    with (
        pytest.raises(RuntimeError, match="module '0' gave no tensor: got NoneType"),
        record(model, "0"),
    ):
        model(x)
    assert is_clean(model)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_half_precision_is_recorded_as_it_is(net, x, dtype):
    net, x = net.to(dtype), x.to(dtype)
    with torch.no_grad(), record(net, "blocks.*", detach=True) as seen:
        y = net(x)
    assert torch.equal(y, net(x)) and {t.dtype for t in seen.values()} == {dtype}


def test_a_copy_made_in_the_block_does_not_write_into_the_record(net, x):
    with record(net, "") as seen:
        net(x)
        copied = copy.deepcopy(net)
    before = {name: tensor.clone() for name, tensor in seen.items()}
    copied(torch.zeros_like(x))
    assert seen.keys() == before.keys()
    assert all(seen[name].equal(before[name]) for name in seen)


def test_a_copy_that_runs_in_the_block_does_not_write_into_the_record(net, x):
    with record(net, "head", "") as seen:
        y = net(x)
        copy.deepcopy(net)(-x)
    assert seen["head"] is y and seen[""] is y


def test_what_a_wildcard_matches_may_stay_idle_where_something_of_it_runs(net, x):
    with record(net, "*", detach=True) as seen:
        net(x)
    assert "unused" not in seen and len(seen) == 1 + 11 * 5 + 1  # the model, five a block, the head
    with (
        pytest.raises(RuntimeError, match=r"never ran.*\['unused'\]"),
        record(net, "h*", "*", "unused"),
    ):
        net(x)
    with (
        pytest.raises(RuntimeError, match=r"never ran.*\['blocks.1', 'blocks.2'\]"),
        record(net, "blocks.[12]", "head"),
    ):
        net.head(x)
