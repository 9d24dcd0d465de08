"""For all tests."""

from jaxtyping import install_import_hook

# The shapes in types are checked at each call, in what is imported from here on.
install_import_hook(["minivit.analysis", "minivit.figures"], "beartype.beartype")

from minivit.hub.import_torchvision import mend  # noqa: E402

mend()  # before a test imports torchvision, or timm
