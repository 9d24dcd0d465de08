"""For all tests."""

from minivit.hub.import_torchvision import mend

mend()  # before a test imports torchvision, or timm
