"""For all tests."""

from minivit._torchvision import mend

mend()  # before a test imports torchvision, or timm
