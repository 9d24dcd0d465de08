"""nbval compares outputs of notebooks as ``book.tools.outputs``."""

from nbval.plugin import IPyNbCell

from book.tools.outputs import differences

collect_ignore = ["ledger"]  # its notebook fetches models


def compare_outputs(cell, new, stored, skip_compare=None):
    cell.comparison_traceback = differences(stored, new)
    return not cell.comparison_traceback


IPyNbCell.compare_outputs = compare_outputs
