"""Thousands of calls with one bad argument each, to see that each is answered right or refused clearly.

python -m tests.hostile --cases 10000 --seed 1
"""

from minivit.import_torchvision import patch_torchvision_import

patch_torchvision_import()  # before timm imports torchvision
