import dataclasses
import functools
import hashlib
import math

import pytest
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_file

from minivit import Preprocess, ViTConfig, load
from minivit.catalogue import MODELS, TORCHVISION, create
from minivit.files import fields_of, save
from tests import parity
from tests.refusals import assert_refused

NAMED = [(name, weights) for name, known in TORCHVISION.items() for weights in known]


def draw(model):
    return parity.draw(model).eval()


@functools.cache
def picture():
    g = torch.Generator().manual_seed(1)
    x = torch.randint(0, 256, (3, 20, 30), generator=g, dtype=torch.uint8)
    return Image.fromarray(x.permute(1, 2, 0).numpy()).resize((600, 400))


@pytest.mark.parametrize(("name", "weights"), NAMED)
def test_named_weights_answer_as_torchvisions(tmp_path, monkeypatch, name, weights):
    config = MODELS[name]
    member = torchvision.models.get_model_weights(name)[weights]
    (size,) = member.transforms().crop_size
    if isinstance(config, ViTConfig):
        patch = config.patch_size
        small = ViTConfig(patch_size=patch, dim=12, depth=2, heads=3)
        reference = torchvision.models.VisionTransformer(size, patch, 2, 3, 12, 48)
    else:
        small = dataclasses.replace(config, stages=(1, 1, 1, 1))
        kinds = torchvision.models.resnet
        kind = kinds.BasicBlock if config.block == "basic" else kinds.Bottleneck
        reference = kinds.ResNet(kind, small.stages)
    monkeypatch.setitem(MODELS, name, small)
    # Its state stands where torchvision's weights would be, under a name with its hash.
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    torch.save(draw(reference).state_dict(), folder / "scratch")
    digits = hashlib.sha256((folder / "scratch").read_bytes()).hexdigest()[:8]
    (folder / "scratch").rename(folder / f"vit-{digits}.pth")
    monkeypatch.setattr(member.value, "url", f"http://127.0.0.1:9/vit-{digits}.pth")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    model = load(name, weights)
    assert not model.training
    assert model.config.image_size == (size, size)
    assert model.preprocess == Preprocess.like(member.transforms())
    assert list(model.classes) == member.meta["categories"]
    assert model.licence == member.meta.get("license")
    ours = model(model.preprocess(picture()))
    theirs = reference(member.transforms()(picture())[None])
    assert theirs.abs().max() > 0.5
    assert (ours - theirs).abs().max() < 1e-5 * theirs.abs().max()


SMALL = {"image_size": 64, "patch_size": 16, "dim": 12, "depth": 2, "heads": 3, "classes": 5}


def small(**changes):
    return draw(create("vit_b_16", **SMALL | changes))


def torchvisions():
    """The same numbers under torchvision's names."""
    return draw(torchvision.models.VisionTransformer(64, 16, 2, 3, 12, 48, num_classes=5))


@pytest.mark.parametrize("wrap", [None, "model", "state_dict"])
@pytest.mark.parametrize("source", [small, torchvisions])
@pytest.mark.parametrize("suffix", ["pth", "pt", "safetensors"])
def test_a_files_names_wrapping_and_format_are_told_apart(tmp_path, source, wrap, suffix):
    path, model, state = tmp_path / f"a.{suffix}", source(), source().state_dict()
    if suffix == "safetensors":
        save_file(state, path)
    else:
        torch.save({wrap: state, "epoch": 3, "optimizer": {"lr": 0.1}} if wrap else state, path)
    loaded = load("vit_b_16", path, **SMALL)
    images = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(loaded(images), model(images), rtol=1e-5, atol=1e-5)
    assert loaded.preprocess == Preprocess((64, 64), (64, 64))
    assert (loaded.classes, loaded.licence) == (list("01234"), None)


def test_half_precision_in_a_file_becomes_float32_and_grey_has_no_preprocessing(tmp_path):
    model, path = small(channels=1), tmp_path / "a.pth"
    torch.save(model.half().state_dict(), path)
    loaded = load("vit_b_16", path, **SMALL | {"channels": 1})
    for key, tensor in loaded.state_dict().items():
        assert tensor.dtype == torch.float32 and tensor.equal(model.state_dict()[key].float())
    assert loaded.preprocess is None


class Code:
    """Unpickling this would write a file beside the checkpoint."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (exec, (f"open({str(self.path) + '.executed'!r}, 'w')",))


def state(path, model=small, **changes):
    """Writes a model's state with changes: a tensor, or none for a key left out."""
    new = model().state_dict() | {key.replace("__", "."): v for key, v in changes.items()}
    torch.save({key: value for key, value in new.items() if value is not None}, path)


def cut(path, write):
    """What is left of a file whose end is lost."""
    write(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 9 // 10])


NAN, SPARSE = torch.full((5, 12), math.nan), torch.ones(5, 12).to_sparse()
BAD = {
    "truncated": ("a.pth", lambda p: cut(p, state), "whole checkpoint.*a.pth"),
    "empty": ("a.pth", lambda p: p.write_bytes(b""), "whole checkpoint.*a.pth.*EOFError"),
    "code": ("a.pth", lambda p: torch.save({"model": Code(p)}, p), "tensors alone.*a.pth.*UnpicklingError"),
    "code in an old file": ("a.pth", lambda p: torch.save({"model": Code(p)}, p, _use_new_zipfile_serialization=False), "tensors alone.*a.pth.*UnpicklingError"),
    "a list": ("a.pth", lambda p: torch.save([NAN], p), "state dict.*a.pth: got a list"),
    "numbered": ("a.pth", lambda p: torch.save({0: NAN}, p), "state dict of dense tensors, at .*a.pth: got a dict"),
    "safetensors truncated": ("a.safetensors", lambda p: cut(p, lambda p: save(small(), p)), "whole checkpoint.*SafetensorError"),
    "metadata that is no JSON": ("a.safetensors", lambda p: save_file({"a": NAN}, p, {"minivit": "{"}), "whole checkpoint.*JSONDecodeError"),
    "gaps": ("a.pth", lambda p: state(p, head__weight=SPARSE), "dense tensors, at .*head.weight"),
    "no numbers": ("a.pth", lambda p: state(p, head__weight=NAN.to("meta")), "dense tensors, at .*head.weight"),
    "NaN": ("a.pth", lambda p: state(p, head__weight=NAN), "1 with NaN or infinity: head.weight"),
    "missing": ("a.pth", lambda p: state(p, norm__weight=None), "1 missing: norm.weight"),
    "missing, torchvision's names": ("a.pth", lambda p: state(p, torchvisions, encoder__ln__weight=None), "1 missing: encoder.ln.weight"),
    "surplus": ("a.pth", lambda p: state(p, norm__gamma=NAN), "1 surplus: norm.gamma"),
    "integers": ("a.pth", lambda p: state(p, norm__weight=torch.ones(12, dtype=torch.long)), r"norm.weight \(torch.int64\)"),
    "no tensor": ("a.pth", lambda p: state(p, norm__weight="one"), r"norm.weight \(a str\)"),
    "other classes": ("a.pth", lambda p: state(p, lambda: small(classes=7)), r"head.weight \(\[7, 12\], expected \[5, 12\]\).*classes=10"),
    "other windows and classes": ("a.safetensors", lambda p: save(small(window=2, classes=7), p), r"saved with classes=7 \(asked for: 5\), window=2 \(asked for: None\)"),
    "no file": ("a.pth", lambda p: None, "expected a file at .*a.pth: got none"),
    "folder": ("a.pth", lambda p: p.mkdir(), "expected a file at .*a.pth: got a folder"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_does_not_fit_is_one_clear_error(tmp_path, case):
    name, write, said = BAD[case]
    write(tmp_path / name)
    before = sorted(tmp_path.iterdir())
    with pytest.raises((ValueError, FileNotFoundError), match=said) as caught:
        load("vit_b_16", tmp_path / name, **SMALL)
    assert str(tmp_path / name) in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before  # nothing was executed
    if "code" in case:  # and it could have been
        torch.load(tmp_path / name, weights_only=False)
        assert (tmp_path / "a.pth.executed").exists()


def test_names_that_do_not_fit_are_refused_before_anything_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr("minivit.loading.fetch", lambda url: pytest.fail("fetched"))
    ours, theirs = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    save(small(), ours)
    save_file({"a": torch.zeros(2)}, theirs)
    assert_refused([
        (lambda: load("vit_b_32", "IMAGENET1K_V2"), ValueError, "expected IMAGENET1K_V1 .* got 'IMAGENET1K_V2'"),
        (lambda: load("vit_32px", "IMAGENET1K_V1"), ValueError, "no weights .* for vit_32px"),
        (lambda: load("digits_vti"), ValueError, "no model 'digits_vti': did you mean .*digits_vit"),
        (lambda: load("vit_b_32", "IMAGENET1K_V1", clases=10), ValueError, "no field 'clases': did you mean classes"),
        (lambda: load(ours, clases=5), ValueError, "a ViT has no field 'clases': did you mean classes"),
        (lambda: load("vit_b_32", "imagenet1k_v1.pth"), FileNotFoundError, "at imagenet1k_v1.pth: got none"),
        (lambda: load(theirs), ValueError, "does not say what model it holds: expected load.name, '.*b.safe"),
        (lambda: load(ours, ours), ValueError, "a.safetensors holds weights itself: got weights="),
    ])  # fmt: skip


FAMILIES = ["vit_8px", "mixer_8px", "feedforward_8px", "resnet_8px", "alternet_32px", "pit_32px", "hybrid_32px"]  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_a_file_of_ours_says_itself_what_model_it_holds(tmp_path, name):
    model, path = draw(create(name, classes=3)), tmp_path / "model.safetensors"
    side, values = model.config.image_size, (0.5,) * model.config.channels
    model.preprocess = Preprocess(side, side, mean=values, std=values)
    save(model, path)
    with pytest.raises(ValueError, match="family=|saved with"):
        load("mixer_b_16" if name == "vit_8px" else "vit_8px", path)
    for source in (str(path), path):
        back = load(source)
        assert fields_of(back.config) == fields_of(model.config)
        assert type(back) is type(model) and back.preprocess == model.preprocess
        images = torch.randn(2, model.config.channels, side, side)
        assert torch.equal(back(images), model(images))
    with pytest.raises(ValueError, match=r"saved with classes=3 \(asked for: 4\)"):
        load(path, classes=4)
