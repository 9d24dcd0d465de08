"""Files to read: a model, a folder of images, and the same damaged."""

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
