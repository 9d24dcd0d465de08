"""What users of other programs reported as wrong: here it is right, or refused in one sentence.

The right values stand in ``right.py``, which knows nothing of what is tested.
"""

import asyncio
import subprocess
import sys
import warnings
from pathlib import Path

import monai.networks.nets as monai
import numpy as np
import pytest
import timm
import torch
import transformers
from PIL import Image
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from vit_pytorch import na_vit_nested_tensor

import minivit
import vitlab
from tests.reports import right
from tests.vitlab.tried.by_hand import distances, mean_distance
from vitlab.convert.loaded_model import LoadedModel
from vitlab.convert.onnx import export
from vitlab.data.folder import folder
from vitlab.data.pictures import open_picture

pytestmark = pytest.mark.full
IMAGES, CLASSES = (
    torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(0)),
    torch.tensor([0, 2, 1, 3]),
)
SMALL = {
    "img_size": 64,
    "patch_size": 16,
    "embed_dim": 48,
    "depth": 3,
    "num_heads": 3,
    "num_classes": 5,
}
HF = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 96,
    "image_size": 64,
    "patch_size": 16,
    "num_labels": 5,
}


def of_timm(name, **changes):
    return right.drawn(timm.create_model(name, **SMALL | changes))


def of_hf(name, **changes):
    config = getattr(transformers, name.replace("ForImageClassification", "Config"))(**HF | changes)
    return right.drawn(getattr(transformers, name)(config))


def equal(found, known, atol=1e-6):
    torch.testing.assert_close(
        torch.as_tensor(found).double(), torch.as_tensor(known).double(), rtol=1e-4, atol=atol
    )


# Tokens before the patches, and whether the head reads the first token or the patches' mean.
READ = {
    "vit_base_patch16_224": (1, "first"), "vit_medium_patch16_gap_256": (0, "mean"), "vit_medium_patch16_reg4_gap_256": (4, "mean"),
    "vit_so150m_patch16_reg4_gap_256": (4, "mean"), "beit_base_patch16_224": (1, "mean"), "eva02_tiny_patch14_224": (1, "mean"), "vit_small_patch16_dinov3": (5, "mean"),
    "BeitForImageClassification": (1, "mean"), "Data2VecVisionForImageClassification": (1, "mean"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_maps_are_of_the_tokens_that_the_head_reads(name):
    """hila-chefer/Transformer-Explainability#16, jacobgil/vit-explain#25, vidarlab/xformer-paired-viz#1."""
    model = of_hf(name) if name.endswith("Classification") else of_timm(name)
    extra, read = READ[name]
    patches = slice(extra, None)
    rollout, relevance = right.maps(
        model, IMAGES, CLASSES, [0] if read == "first" else patches, patches
    )
    equal(vitlab.rollout(model, IMAGES).patches[-1], rollout)
    equal(vitlab.relevance(model, IMAGES, CLASSES).patches[-1], relevance)


@pytest.mark.parametrize(("old", "new"), [((4, 16), (8, 8)), ((8, 4), (4, 8))])
def test_positions_fit_another_grid_of_as_many_tokens(old, new, tmp_path):
    """timm#2737."""
    model = right.drawn(minivit.create("vit_8px", image_size=old, dim=8, depth=1, heads=2))
    minivit.save(model, tmp_path / "m.safetensors")
    sizes = [(side // 2, other // 2) for side, other in (old, new)]
    extra = len(model.positions.table) - sizes[0][0] * sizes[0][1]
    known = right.stretched(model.positions.table.detach(), *sizes, extra)
    assert torch.equal(
        minivit.load(tmp_path / "m.safetensors", image_size=new).positions.table, known
    )


def test_a_grid_follows_the_size_that_was_set_last():
    """timm#2317."""
    model = of_timm("vit_base_patch16_224")
    model.set_input_size(img_size=(128, 192))
    model.set_input_size(img_size=(192, 128))
    assert vitlab.rollout(model, torch.rand(1, 3, 192, 128)).grid == (12, 8)
    assert torch.equal(
        vitlab.position_table(model), model.pos_embed[0, 1:].detach().view(12, 8, 48)
    )


def test_distances_are_right_at_sizes_that_are_not_square():
    """facebookresearch/dinov2#506."""
    model = of_timm(
        "vit_small_patch14_dinov2",
        img_size=(28, 70),
        patch_size=14,
        dynamic_img_size=True,
        init_values=0.1,
    )
    for rows, columns in (2, 5), (3, 4), (2, 2):
        images = torch.rand(2, 3, 14 * rows, 14 * columns)
        found = vitlab.attention_distance(model, images)
        apart = distances((rows, columns), (14, 14))
        equal(found.uniform, apart.mean().expand(3), 1e-12)
        for row, seen in zip(found.pixels, right.weights(model, images), strict=True):
            equal(row, mean_distance(seen, range(1, rows * columns + 1), apart))


def test_positions_without_a_class_token_are_all_of_patches():
    """google-research/vision_transformer#317."""
    model, images = (
        of_timm("vit_base_patch16_224", img_size=224, class_token=False, global_pool="avg"),
        torch.rand(2, 3, 224, 224),
    )
    assert torch.equal(vitlab.position_table(model), model.pos_embed[0].detach().view(14, 14, 48))
    equal(vitlab.from_timm(model)(images).detach(), model(images).detach())


def test_a_short_last_batch_does_not_spoil_cka():
    """AntixK/PyTorch-Model-Compare#4: it is left out, or refused."""
    model, images = of_timm("vit_base_patch16_224"), torch.rand(18, 3, 64, 64)
    known = right.cka(
        [
            tuple(right.output_of(model, f"blocks.{i}", batch) for i in (0, 2))
            for batch in images[:16].split(8)
        ]
    )
    try:
        with warnings.catch_warnings(action="ignore"):
            found = vitlab.cka(model, images.split(8), "blocks.0", "blocks.2").values[0, 1]
    except ValueError as error:
        assert "4 images or more in every batch" in str(error)
    else:
        equal(found, known)


def test_cka_may_be_negative_and_names_a_dead_layer():
    """dmarx/cka_pytorch#2."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        x, y = torch.randn(2, 10, 7, generator=generator)
        equal(vitlab.linear_cka(x, y), right.cka([(x, y)]), 1e-5)
    with pytest.raises(ValueError, match=r"\['x'\] give the same"):
        vitlab.linear_cka(torch.ones(10, 7), torch.randn(10, 7))


class Attending(nn.Module):
    """Gives its output and no weights, as torch's attention may."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)


def test_an_attention_that_gives_none_beside_its_output_is_inverted():
    """KamitaniLab/bdpy#76."""
    model = right.drawn(Attending(), 0.5)
    x = torch.rand(1, 5, 8, generator=torch.Generator().manual_seed(0))
    found = vitlab.inversion.invert(model, x, "attention", steps=30)
    apart = (
        right.output_of(model, "attention", found.image) - right.output_of(model, "attention", x)
    ).norm()
    equal(found.feature_distance.nan_to_num(torch.inf).min(), apart, 1e-4)
    assert apart < found.feature_distance[0, 0] / 5


def test_weights_are_those_that_monai_saves():
    """Project-MONAI/tutorials#1646."""
    for sizes in {"img_size": 32, "spatial_dims": 2}, {"img_size": (16, 16, 16), "spatial_dims": 3}:
        model = right.drawn(
            monai.ViT(
                3,
                patch_size=8,
                hidden_size=16,
                mlp_dim=16,
                num_layers=2,
                num_heads=2,
                save_attn=True,
                **sizes,
            )
        )
        with minivit.record(model, "blocks.*.attn.weights") as seen:
            model(torch.rand(2, 3, *([32] * 2 if sizes["spatial_dims"] == 2 else [16] * 3)))
        for block, found in zip(model.blocks, seen.values(), strict=True):
            equal(found.detach(), block.attn.att_mat.detach())


def compiled(how, model):
    if how == "the model":
        return torch.compile(model, backend="eager")
    if how == "in place":
        model.compile(backend="eager")
    elif how == "submodules in place":
        for block in model.blocks:
            block.compile(backend="eager")
    elif how == "submodules replaced":
        for i, block in enumerate(model.blocks):
            model.blocks[i] = torch.compile(block, backend="eager")
    return model


@pytest.mark.parametrize(
    "how", ["the model", "in place", "submodules in place", "submodules replaced", "a function"]
)
def test_what_is_recorded_after_a_compiled_call_is_what_runs(how):
    """pytorch#117758, pytorch#96722."""
    model, (before, after) = of_timm("vit_base_patch16_224"), IMAGES.split(2)
    known, weights = right.output_of(model, "blocks.1", after), right.weights(model, after)[1]
    model = compiled(how, model)
    call = torch.compile(lambda x: model(x), backend="eager") if how == "a function" else model
    with torch.no_grad():
        call(before)
        with minivit.record(model, "blocks.1*", "blocks.1*attn.weights") as seen:
            call(after)
    replaced = "._orig_mod" * (how == "submodules replaced")
    equal(seen[f"blocks.1{replaced}"], known)
    equal(seen[f"blocks.1{replaced}.attn.weights"], weights)
    torch.compiler.reset()


def test_weights_are_found_where_sdpa_gives_none():
    """huggingface/transformers#30978."""
    model = of_hf("ViTForImageClassification", attn_implementation="sdpa")
    with minivit.record(model, "*.attention.weights", detach=True) as seen:
        assert not model(IMAGES, output_attentions=True).attentions
    for found, known in zip(seen.values(), right.weights(model, IMAGES), strict=True):
        equal(found, known)


def test_a_wrapper_of_timm_is_looked_into():
    """Prisma-Multimodal/ViT-Prisma#163."""
    config = transformers.TimmWrapperConfig(
        architecture="vit_base_patch16_224",
        num_labels=5,
        model_args={k: v for k, v in SMALL.items() if k != "num_classes"},
    )
    model = right.drawn(transformers.TimmWrapperForImageClassification(config))
    extra = slice(1, None)
    equal(
        vitlab.rollout(model, IMAGES).patches[-1], right.maps(model, IMAGES, CLASSES, [0], extra)[0]
    )
    with pytest.raises(ValueError, match="TimmWrapper"):
        vitlab.from_huggingface(model)


def pictures(path, count, seed=0):
    path.mkdir(parents=True, exist_ok=True)
    for i, pixels in enumerate(
        np.random.default_rng(seed).integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)
    ):
        Image.fromarray(pixels).save(path / f"{i}.png")


def test_what_other_systems_leave_in_folders_is_no_image_and_no_class(tmp_path):
    """pytorch/vision#2831, fastai#200."""
    for i, name in enumerate("ab"):
        pictures(tmp_path / name, 9, i)
        for rubbish in (
            ".DS_Store",
            "Thumbs.db",
            ".ipynb_checkpoints/0-checkpoint.png",
            "@eaDir/0.png/SYNOPHOTO_THUMB_M.png",
        ):
            there = tmp_path / name / rubbish
            there.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 4)).save(there, "png") if rubbish.endswith(
                "png"
            ) else there.write_bytes(b"x")
    (tmp_path / "__MACOSX/a").mkdir(parents=True)
    (tmp_path / "__MACOSX/a/._0.png").write_bytes(b"x")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    with warnings.catch_warnings(action="ignore"):
        data = folder(tmp_path, 8)
    assert data.classes == ("a", "b") and sum(map(len, data.parts)) == 18


def test_sixteen_bits_are_not_white(tmp_path):
    """Pillow#3011, pytorch#20524."""
    levels = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)
    Image.fromarray(levels).save(tmp_path / "x.png")
    assert np.array_equal(np.array(open_picture(tmp_path / "x.png")), right.eight_bits(levels))
    with pytest.raises(ValueError, match="at most 8 bits a channel.*I;16"):
        minivit.Preprocess((8, 8), (8, 8))(Image.open(tmp_path / "x.png"))


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_images_stand_as_their_exif_says(orientation, tmp_path):
    """ollama#18418, yolov5#405."""
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(tmp_path / "x.png", exif=exif)
    known = torch.from_numpy(right.upright(pixels, orientation).copy()).permute(2, 0, 1)
    preprocess = minivit.Preprocess((8, 8), (8, 8))
    assert torch.equal(preprocess(Image.open(tmp_path / "x.png")), preprocess(known))


def test_transparency_is_white():
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 4), dtype=np.uint8)
    found = minivit.Preprocess((8, 8), (8, 8)).fit(Image.fromarray(pixels))[0].permute(1, 2, 0)
    equal(found, right.on_white(pixels), 1)  # Pillow rounds in integers


def test_an_export_takes_any_number_of_images(tmp_path):
    """pytorch#157621, livekit-wakeword#39."""
    model = right.drawn(minivit.create("vit_8px", dim=8, depth=1, heads=2))
    loaded = LoadedModel(
        model, minivit.Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.5,)), None, "tiny", None, None
    )
    export(loaded, tmp_path / "m.onnx")
    for count in 1, 2, 7:
        images = torch.rand(count, 1, 8, 8)
        equal(right.by_onnx(tmp_path / "m.onnx", images), model(images).detach(), 1e-5)


def test_one_image_of_a_class_is_refused_and_few_are_in_every_part(tmp_path):
    """v7labs/darwin-py#406."""
    pictures(tmp_path / "a", 40)
    pictures(tmp_path / "b", 1, 1)
    with pytest.raises(ValueError, match="images of each class.*1 of b"):
        folder(tmp_path, 8)
    pictures(tmp_path / "b", 3, 2)
    assert all(set(part.labels.tolist()) == {0, 1} for part in folder(tmp_path, 8).parts)


def test_copies_in_train_and_test_are_told(tmp_path):
    """tqwei05/PlantSeg#11, RIAWELC#2."""
    for part in "train", "test":
        for i, name in enumerate("ab"):
            pictures(tmp_path / part / name, 9, i)
    Image.open(tmp_path / "test/a/0.png").save(tmp_path / "test/a/0.bmp")
    with pytest.warns(UserWarning, match="also among the training images") as said:
        data = folder(tmp_path, 8)
    copies = sum(
        (data.train.images == image).flatten(1).all(1).any().item() for image in data.test.images
    )
    assert copies >= 15 and f"images: {copies} (" in str(said[-1].message)


def test_two_coroutines_of_one_thread_get_their_own():
    model = of_timm("vit_base_patch16_224")
    known = [right.weights(model, x)[1] for x in IMAGES.split(2)]

    async def handle(x):
        with minivit.record(model, "blocks.1.attn.weights", detach=True) as seen:
            await asyncio.sleep(0.01)
            model(x)
            await asyncio.sleep(0.01)
        return seen["blocks.1.attn.weights"]

    async def both():
        return await asyncio.gather(*map(handle, IMAGES.split(2)))

    for found, weights in zip(asyncio.run(both()), known, strict=True):
        equal(found, weights)


def test_attention_between_packed_images_is_refused_in_words():
    """vit-pytorch's ``na_vit_nested_tensor``, whose weights are no tensor of one shape."""
    model = right.drawn(
        na_vit_nested_tensor.NaViT(
            image_size=16,
            patch_size=8,
            num_classes=3,
            dim=16,
            depth=1,
            heads=2,
            mlp_dim=16,
            dim_head=8,
        )
    )
    images = [torch.rand(3, 16, 8), torch.rand(3, 16, 16)]
    model(images)
    with (
        pytest.raises(Exception, match="nested|attention weights") as refused,
        minivit.record(model, "*.0.weights"),
    ):
        model(images)
    assert "matmul" not in str(refused.value)


class Flexible(nn.Module):
    def forward(self, x):
        q = x.unflatten(-1, (2, -1)).transpose(1, 2)
        return flex_attention(q, q, q).transpose(1, 2).flatten(2)


def test_attention_by_a_kernel_without_weights_is_refused_with_what_helps():
    """FlexAttention."""
    model = nn.Sequential(Flexible())
    with (
        pytest.raises(RuntimeError, match="choose the model's eager or sdpa attention"),
        minivit.record(model, "0.weights"),
    ):
        model(torch.rand(1, 16, 32))


def test_the_right_values_know_nothing_of_what_is_tested():
    said = "import sys, tests.reports.right; print(sorted({'minivit', 'vitlab'} & {m.split('.')[0] for m in sys.modules}))"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", said], capture_output=True, text=True, cwd=root, check=True
    )
    assert done.stdout.strip() == "[]"
