"""Two models side by side: random in every number, and compared in all that they compute."""

from copy import deepcopy

import pytest
import torch
import torchvision
from torch import nn

import minivit
from minivit.catalogue import MODELS

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)


def random(*shape, seed=0):
    """Standard normal numbers in float64, the same each time for a seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(a, b, tolerance=1e-10):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def reference(name, dtype=torch.float32, depth=None, image_size=224):
    """torchvision's model under this name, random in every parameter; with all blocks by default.

    Untrained, its logits and their gradients are exactly zero, and any two models seem equal.
    """
    c = MODELS[name]
    sizes = image_size, c.patch_size, depth or c.depth, c.heads, c.dim, c.hidden
    with torch.device("meta"):  # its own initialisation would take longer than the comparison
        model = torchvision.models.VisionTransformer(*sizes, num_classes=c.classes)
    return draw(model.to(dtype).to_empty(device="cpu").eval())


def draw(model, seed=0):
    """Draws every number at random, so that tokens keep a variance near 1 and none is hidden."""
    g = torch.Generator().manual_seed(seed)
    for key, tensor in model.state_dict().items():
        if not tensor.is_floating_point():  # how many batches BatchNorm has seen
            tensor.fill_(7)
        elif key.endswith("running_var"):
            tensor.uniform_(0.5, 1.5, generator=g)
        elif tensor.ndim == 1 and key.endswith("weight"):  # of norms
            tensor.normal_(1, 0.2, generator=g)
        elif tensor.ndim > 1 and key.endswith("weight"):
            tensor.normal_(0, tensor[0].numel() ** -0.5, generator=g)
        else:  # biases, class token, positions, running means
            tensor.normal_(0, 0.5, generator=g)
    return model.requires_grad_(False)


def pictures(model, image_size=224, batch=1):
    return random(batch, 3, image_size, image_size, seed=1).to(next(model.parameters()).dtype)


class Function(nn.Module):
    """A module that computes any function of what it is given, and perhaps of modules inside."""

    def __init__(self, function, *inner):
        super().__init__()
        self.function, self.inner = function, nn.ModuleList(inner)
        self.eval()

    def forward(self, *args, **kwargs):
        return self.function(*args, *self.inner, **kwargs)


def blocks_of(model):
    """The blocks of minivit's or another library's models, in the order in which they run."""
    if isinstance(model, torchvision.models.VisionTransformer):
        return model.encoder.layers
    if isinstance(model, torchvision.models.ResNet):
        return [*model.layer1, *model.layer2, *model.layer3, *model.layer4]
    if hasattr(model, "config") and not isinstance(model, minivit.model.Model):
        lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
        return lists[0]  # Hugging Face's
    return model.blocks  # minivit's, and timm's


def given(output):
    """What a model gives, in Hugging Face's words by the first of these names."""
    for name in ("logits", "image_embeds", "pooler_output"):
        if getattr(output, name, None) is not None:
            return output[name]
    return output


def observe(model, images, gradient=True):
    """Logits, tokens or maps after every block, and the gradient of a random mix of the logits."""
    seen = {}

    def keep(i):
        return lambda module, inputs, output: seen.update({f"tokens {i}": output.detach()})

    hooks = [block.register_forward_hook(keep(i)) for i, block in enumerate(blocks_of(model))]
    images = images.clone().requires_grad_(gradient)
    seen["logits"] = given(model(images))
    for hook in hooks:
        hook.remove()
    if gradient:
        mix = random(*seen["logits"].shape, seed=2).to(images.dtype)
        (seen["gradient"],) = torch.autograd.grad((seen["logits"] * mix).sum(), images)
    return {name: tensor.detach() for name, tensor in seen.items()}


def wrong(ours, theirs):
    """What differs by more than the tolerance for its dtype, and its max|a - b| / max|b|."""
    assert ours.keys() == theirs.keys()
    for name, b in theirs.items():
        assert b.abs().mean() > 1e-4, f"{name} is too close to zero to tell models apart"
        assert ours[name].shape == b.shape, f"{name}: {ours[name].shape}, expected {b.shape}"
    away = {n: ((ours[n] - b).abs().max() / b.abs().max()).item() for n, b in theirs.items()}
    tolerance = TOLERANCE[theirs["logits"].dtype]
    return {name: most for name, most in away.items() if not most <= tolerance}  # NaN, too


def same(ours, theirs):
    """Whether two observations are equal within the tolerance for their dtype."""
    return not wrong(ours, theirs)


def assert_same(ours, theirs):
    assert not (found := wrong(ours, theirs)), found


def compare(theirs, images, convert):
    """A model and what is made of it compute the same, in every block too."""
    expected = observe(theirs, images)
    assert len(expected) == len(blocks_of(theirs)) + 2
    assert_same(observe(convert(theirs), images), expected)


def check_faults(model, images, expected, faults):
    """The comparison holds, and fails for a copy of the model with each of these faults planted."""
    assert_same(observe(model, images), expected)
    for name, fault in faults.items():
        fault(faulty := deepcopy(model))
        assert {"logits", "gradient"} <= wrong(observe(faulty, images), expected).keys(), name


def put(model, kind, **attributes):
    """Sets attributes of all modules of a kind."""
    for module in list(model.modules()):
        if isinstance(module, kind):
            for name, value in attributes.items():
                setattr(module, name, value)


def parts(key, tensor):
    """What is to be disturbed under a key: all, if there is any, or the thirds of q, k and v."""
    if key.endswith(("in_proj_bias", "qkv.bias", ".kv.bias")):
        names = "kv" if key.endswith(".kv.bias") else "qkv"
        return dict(zip(names, tensor.chunk(len(names)), strict=True))
    return {"": tensor} if tensor.numel() else {}


def unseen(model, images, expected):
    """Keys in which one number can change without the comparison failing."""
    found, g = [], torch.Generator().manual_seed(3)
    for key, tensor in model.state_dict().items():
        for part, numbers in parts(key, tensor).items():
            i = torch.randint(numbers.numel(), (), generator=g).item()
            before = numbers.view(-1)[i].item()
            numbers.view(-1)[i] += 0.5
            if same(observe(model, images, gradient=False), expected):
                found.append((key, part))
            numbers.view(-1)[i] = before
    return found


def convert(model: nn.Module) -> minivit.ViT:
    return minivit.from_torchvision(model).requires_grad_(False)
