"""nbval runs notebooks with this folder's packages, and compares
outputs as ``book.tools.outputs``.
"""

import os

from nbval.plugin import IPyNbCell

from book.tools.address import ROOT
from book.tools.outputs import differences

os.environ["PYTHONPATH"] = str(ROOT)  # of kernels
collect_ignore = ["ledger"]  # its notebook fetches models


def compare_outputs(cell, new, stored, skip_compare=None):
    cell.comparison_traceback = differences(stored, new)
    return not cell.comparison_traceback


IPyNbCell.compare_outputs = compare_outputs
