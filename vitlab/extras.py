"""What a machine has: the packages that only some of minivit needs, and devices."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version

import torch


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around an import: names in the ModuleNotFoundError the extra that installs the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        how = f'{error}. In the repository of minivit: pip install ".[{name}]"'
        raise ModuleNotFoundError(how, name=error.name) from error


def installed(names: Iterable[str]) -> dict[str, str]:
    """The versions of those of these packages that are installed."""
    versions = {}
    for name in names:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def device_of(name: str) -> torch.device:
    """The device with this name, or for ``"auto"`` the fastest there is."""
    devices = ["cuda"] * torch.cuda.is_available() + ["mps"] * torch.backends.mps.is_available()
    devices.append("cpu")
    if name not in ("auto", *devices):
        raise ValueError(f"there is no {name} device here")
    return torch.device(devices[0] if name == "auto" else name)


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device has units for bfloat16, which make it faster than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # For x86 processors alone, and torch has no public name for it.
    return device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()
