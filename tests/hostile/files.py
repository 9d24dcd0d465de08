"""Files to read: a model, a folder of images, and the same damaged in every way; strange images."""

import atexit
import json
import os
import shutil
import struct
import tempfile
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import minivit

ROOT, OWNER = Path(tempfile.mkdtemp(prefix="hostile")), os.getpid()
FILES = ROOT / "a" / "b"  # ../.. is inside, too
FILES.mkdir(parents=True)
atexit.register(lambda: os.getpid() == OWNER and shutil.rmtree(ROOT, ignore_errors=True))


def strange_images() -> dict[str, Image.Image]:
    """Images of every kind that Pillow knows and nobody expects."""
    colours = np.random.default_rng(0).integers(0, 256, (9, 12, 4), dtype=np.uint8)
    grey, rgb, rgba = (Image.fromarray(colours[..., part]) for part in (0, slice(3), slice(4)))
    modes = "CMYK", "P", "1", "YCbCr", "LAB", "HSV", "F", "I"
    kinds = {mode: rgb.convert(mode) for mode in modes} | {"LA": rgba.convert("LA")}
    deep = Image.fromarray(colours[..., 0].astype(np.uint16) * 257)
    kinds |= {"L": grey, "RGBA": rgba, "16 bit": deep}
    kinds |= {f"{w} x {h}": rgb.resize((w, h)) for w, h in [(1, 1), (1, 900), (900, 1), (3000, 2)]}
    turned = rgb.copy()
    turned.getexif()[0x0112] = 6
    return {**kinds, "turned": turned, "of no pixel": Image.new("RGB", (0, 5))}


def make_files(model: Any) -> None:
    """``vit.safetensors``, ``folder``, ``grey.png``, and ``damaged``, from which nothing can be read right."""
    damaged = FILES / "damaged"
    damaged.mkdir()
    minivit.save(model, FILES / "vit.safetensors")
    for name, i in product("abc", range(6)):
        pixels = np.random.default_rng(i + 9 * ord(name)).integers(0, 256, (8, 8), dtype=np.uint8)
        write(FILES / "folder" / name / f"{i}.png", b"")
        Image.fromarray(pixels).save(FILES / "folder" / name / f"{i}.png")
    shutil.copy(FILES / "folder/a/0.png", FILES / "grey.png")
    good, png = (FILES / "vit.safetensors").read_bytes(), (FILES / "grey.png").read_bytes()
    length = int.from_bytes(good[:8], "little")
    head = json.loads(good[8 : 8 + length])

    def with_head(text: str) -> bytes:
        return len(text.encode()).to_bytes(8, "little") + text.encode() + good[8 + length :]

    nan = {**model.state_dict(), "head.bias": torch.full_like(model.head.bias, torch.nan)}
    torch.save(nan, damaged / "nan.pt")
    torch.save(model, damaged / "whole-module.pt")
    about = head["__metadata__"]
    models = {
        "empty": b"", "zeros": bytes(999), "text": b"hello", "cut": good[:-7], "half": good[: len(good) // 2], "short head": good[:20],
        "longer": good + b"more", "head of 2^60": (2**60).to_bytes(8, "little") + good[8:], "no JSON": with_head("{" * 40), "a list": with_head("[1, 2]"),
        "no metadata": with_head(json.dumps({k: v for k, v in head.items() if k != "__metadata__"})), "no config": with_head(json.dumps(head | {"__metadata__": {}})),
        "config of text": with_head(json.dumps(head | {"__metadata__": {k: "nonsense" for k in about}})), "png": png, "zip": b"PK\\3\\4" + bytes(80),
        "other dtype": good.replace(b'"F32"', b'"I32"'), "other family": good.replace(b"ViT", b"XYZ"), "other depth": good.replace(b'depth\\\\": 2', b'depth\\\\": 3'),
    }  # fmt: skip
    chunk = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    size, check = struct.pack(">I", 13), struct.pack(">I", zlib.crc32(chunk))
    images = {
        "empty": b"", "text": b"hello", "cut": png[:-30], "head alone": png[:33], "huge": png[:8] + size + chunk + check + png[33:],
        "other bytes": png[:45] + b"????" + png[49:], "model": good,
    }  # fmt: skip
    for end, contents in ("safetensors", models), ("png", images):
        for name, content in contents.items():
            write(damaged / f"{name}.{end}", content)
    for name, image in strange_images().items():
        for end in ("png", "tiff", "jpg", "webp"):
            try:
                image.save(damaged / f"{name}.{end}", exif=image.getexif())
            except (OSError, ValueError, SystemError, MemoryError):  # not in this format
                (damaged / f"{name}.{end}").unlink(missing_ok=True)
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "green")]
    frames[0].save(damaged / "animated.gif", save_all=True, append_images=frames[1:])
    (damaged / "folder of none").mkdir()
    (damaged / "one class/a").mkdir(parents=True)
    shutil.copytree(FILES / "folder", damaged / "with rubbish")
    for rubbish in ("__MACOSX/._a", "b/@eaDir/x.png", "a/Thumbs.db"):
        write(damaged / "with rubbish" / rubbish, b"x")
    shutil.copytree(FILES / "folder", damaged / "all images cut")
    for path in (damaged / "all images cut").rglob("*.png"):
        write(path, png[:40])


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
