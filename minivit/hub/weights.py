"""The files of torchvision's pretrained weights: fetched, checked and cached."""

import hashlib
import re
import warnings
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlparse

import torch

from minivit.hub.files import replacing


def fetch(url: str) -> Path:
    """Gives the file at a URL: from torch.hub's cache, or downloaded with a progress bar.

    Both are checked against the hash that torchvision writes into a file's name (the first eight
    hexadecimal digits of its SHA-256). A cached file that differs is fetched again, with a warning,
    and stays until the new one is complete.

    Args:
        url: Such as ``https://download.pytorch.org/models/vit_b_32-d86f8d99.pth``.

    Returns:
        The file's path in ``torch.hub.get_dir() / "checkpoints"`` (``TORCH_HOME`` moves it).

    Raises:
        OSError: No network, a transfer that breaks off, another hash, no room, no right to write.
    """
    name = Path(urlparse(url).path).name
    digits = re.findall(r"-([0-9a-f]{8,})\.", name)[-1]
    cached = Path(torch.hub.get_dir(), "checkpoints", name)
    try:
        if cached.exists():
            if _sha256(cached).startswith(digits):
                return cached
            warnings.warn(
                f"{cached} is broken: its SHA-256 does not begin with {digits}. Fetching it again.",
                stacklevel=3,  # where load was called
            )
        cached.parent.mkdir(parents=True, exist_ok=True)
        with replacing(cached) as scratch:  # torch.hub leaves its own scratch file on a full disk
            torch.hub.download_url_to_file(url, str(scratch), digits)
    except (OSError, HTTPException, RuntimeError) as error:  # torch.hub says RuntimeError of a hash
        raise OSError(
            f"could not fetch {url}: {error}. The file can also be put there by hand: {cached}"
        ) from error
    return cached


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
