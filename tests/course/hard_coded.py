"""Finds figures that are hard-coded instead of computed, by what of a notebook they need.

A figure is hard-coded if it and the statements that it needs are made of literals, their methods,
and functions that only pass them on. Whatever else is in them may have computed it. This guards
against slips: whoever wants to can still hide a figure in a call, or in ``exec``.
"""

import ast

from course.definitions import Statement, needed, statements

# Functions and methods whose result is hard-coded if their arguments are.
PASS_ON = {
    *("abs", "float", "int", "round", "min", "max", "sum", "len", "list", "tuple", "sorted", "set"),
    *("dict", "range", "bool", "str", "zip", "tensor", "as_tensor", "array", "asarray", "float32"),
    *("float64", "full", "zeros", "ones", "eye", "arange", "linspace", "mean", "median", "std"),
    *("stack", "cat", "item", "tolist", "numpy", "double", "sqrt", "exp", "log", "log10", "pow"),
    *("Tensor", "Fraction", "Decimal", "deepcopy", "eval", "literal_eval", "loads", "where"),
    *("clamp", "clip", "maximum", "minimum", "add", "sub", "mul", "div", "square", "quantile"),
}
MODULES = {"torch", "np", "numpy", "math", "statistics", "json", "ast"}


def hard_coded_figures(cells: list[str]) -> list[str]:
    """The ids of all ``verdict(id, figure)`` in a notebook's code cells whose figure is hard-coded."""
    claims, listed = [], list[Statement]()
    for number, source in enumerate(cells):
        lines = source.splitlines()  # those of IPython are no Python
        python = ("pass" if line.lstrip().startswith(("%", "!")) else line for line in lines)
        for statement in statements("\n".join(python), number):
            listed.append(statement)
            for call in ast.walk(ast.parse(statement.text)):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "verdict":
                    figures = call.args[1:] + [k.value for k in call.keywords if k.arg == "figure"]
                    if any(_is_hard_coded(figure, listed) for figure in figures):
                        claims.append(ast.literal_eval(call.args[0]))
    return claims


def _is_hard_coded(figure: ast.expr, listed: list[Statement]) -> bool:
    (asked,) = statements(f"figure = ({ast.unparse(figure)})", len(listed))
    parts = needed([*listed, asked], len(listed))
    own = {name for part in parts if not part.imports for name in part.gives}
    used = {name for part in parts for name in part.now | part.later} - own
    for node in (node for part in parts for node in ast.walk(ast.parse(part.text))):
        match node:
            case ast.Attribute(ast.Name(module), name) if module in MODULES - own:
                used.add(name)
            case ast.List([]) | ast.Dict([]):  # to be filled, with what is not known here
                return False
    return used <= PASS_ON | MODULES
