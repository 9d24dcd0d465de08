"""For all tests."""

import pytest
import torch
from jaxtyping import install_import_hook

# Checks types and their shapes at every call, in modules imported from here on. As in mypy, an int
# is a float.
install_import_hook(
    [
        *(
            f"minivit.{name}"
            for name in ["vit", "patches", "positions", "model", "parts", "variants"]
        ),
        *(f"minivit.{name}" for name in ["mixer", "resnet", "hybrid"]),
        "vitlab.instruments",
        "vitlab.inversion",
        "vitlab.figures",
    ],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)

from minivit.import_torchvision import mend  # noqa: E402

mend()  # before a test imports torchvision, or timm


@pytest.fixture(autouse=True, scope="module")
def threads():
    """As many threads for the next file: the command and the studies set their number."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
