"""Files to read: a model, a folder of images, and the same damaged; strange images."""

import atexit
import os
import shutil
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
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
    """``vit.safetensors``, ``folder``, ``grey.png``, and ``damaged``, from which nothing can be read."""
    minivit.save(model, FILES / "vit.safetensors")
    for name, i in product("abc", range(6)):
        pixels = np.random.default_rng(i + 9 * ord(name)).integers(0, 256, (8, 8), dtype=np.uint8)
        (FILES / "folder" / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(FILES / "folder" / name / f"{i}.png")
    shutil.copy(FILES / "folder/a/0.png", FILES / "grey.png")
    (FILES / "damaged/folder of none").mkdir(parents=True)
    for file in (FILES / "vit.safetensors", FILES / "grey.png"):
        whole = file.read_bytes()
        for name, content in {"empty": b"", "text": b"hello", "cut": whole[:-30]}.items():
            (FILES / "damaged" / f"{name}{file.suffix}").write_bytes(content)
