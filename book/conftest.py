"""nbval compares the outputs of notebooks as ``tools.outputs``."""

from nbval.plugin import IPyNbCell

from tools.outputs import differences


def compare_outputs(cell, new, stored, skip_compare=None):
    cell.comparison_traceback = differences(stored, new)
    return not cell.comparison_traceback


IPyNbCell.compare_outputs = compare_outputs
