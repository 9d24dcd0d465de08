"""torchvision, imported so that it also works beside a CPU build of torch.

On Linux the package registry has torchvision only as a CUDA build. Beside a CPU build of torch its
compiled library cannot load, and its Python files then stop at two operators that this library
would have declared (``torchvision::nms``, then ``qnms``). Its models, weight enumerations and data
sets are Python alone: with the two operators declared, nothing else is missing for them.

    from minivit._torchvision import torchvision

Import this before ``timm`` too, which imports torchvision itself.
"""

import sys

import torch

SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

try:
    import torchvision
except ModuleNotFoundError as error:
    if error.name != "torchvision":
        raise
    version = torch.__version__.partition("+")[0]  # without it, pip would take another torch
    raise ModuleNotFoundError(
        f"{error}: pip install torch=={version} torchvision", name=error.name
    ) from error
except RuntimeError as error:
    if "torchvision::nms" not in str(error):
        raise
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]  # what the failed import left half made
    # Kept for as long as the process lives: the declarations go when the library object does.
    _library = torch.library.Library("torchvision", "FRAGMENT")
    _library.define(f"nms{SIGNATURE}")
    _library.define(f"qnms{SIGNATURE}")
    import torchvision

__all__ = ["torchvision"]
