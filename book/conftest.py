"""nbval runs notebooks with this folder's packages, each with its
own ``my_vit.py``, and compares outputs as ``book.tools.outputs``.
"""

import os
from tempfile import TemporaryDirectory, mkdtemp

from nbval.plugin import IPyNbCell, IPyNbFile

from book.tools.address import ROOT
from book.tools.outputs import differences

os.environ["PYTHONPATH"] = str(ROOT)  # of kernels
collect_ignore = ["ledger"]  # its notebook fetches models


def compare_outputs(cell, new, stored, skip_compare=None):
    cell.comparison_traceback = differences(stored, new)
    return not cell.comparison_traceback


IPyNbCell.compare_outputs = compare_outputs

start = IPyNbFile.setup
folder = TemporaryDirectory()  # of pytest's process


def setup(file):
    os.environ["MY_VIT"] = mkdtemp(dir=folder.name)
    start(file)


IPyNbFile.setup = setup
