"""Finds figures that are hard-coded instead of computed, by following names through a notebook.

An expression is hard-coded if it is made of literals, names of such values, their methods, and
functions that only pass them on. The result of any other call is computed. This guards against
slips: whoever wants to can still hide a figure in a call that it does not know, or in ``exec``.
"""

import ast
from dataclasses import dataclass, field

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


@dataclass
class Names:
    """A notebook's names so far, whether their values are hard-coded, and the functions it defines."""

    values: dict[str, bool] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)


def hard_coded_figures(cells: list[str]) -> list[str]:
    """The ids of all ``verdict(id, figure)`` in a notebook's code cells whose figure is hard-coded."""
    names = Names()
    claims = []
    for source in cells:
        lines = source.splitlines()  # those of IPython are no Python
        python = ("pass" if line.lstrip().startswith(("%", "!")) else line for line in lines)
        for statement in ast.parse("\n".join(python)).body:
            for call in ast.walk(statement):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "verdict":
                    figures = call.args[1:] + [k.value for k in call.keywords if k.arg == "figure"]
                    if any(is_hard_coded(figure, names) for figure in figures):
                        claims.append(ast.literal_eval(call.args[0]))
            _learn(statement, names)
    return claims


def is_hard_coded(node: ast.expr, names: Names) -> bool:
    """Whether an expression's value is hard-coded."""
    match node:
        case ast.Constant():
            return True
        case ast.Name():
            return names.values.get(node.id, False)
        case ast.Call():
            return _hard_coded_call(node, names)
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
            inner = Names(dict(names.values), names.functions)
            for loop in node.generators:
                _assign(loop.target, is_hard_coded(loop.iter, names), inner)
            value = node.value if isinstance(node, ast.DictComp) else node.elt
            return is_hard_coded(value, inner)
        case ast.Lambda() | ast.Await() | ast.Yield():
            return False
    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    return bool(parts) and all(is_hard_coded(part, names) for part in parts)


def _hard_coded_call(call: ast.Call, names: Names) -> bool:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    function = call.func
    if isinstance(function, ast.Attribute) and getattr(function.value, "id", "") not in MODULES:
        return all(is_hard_coded(value, names) for value in [function.value, *values])  # a method
    hard_coded = all(is_hard_coded(value, names) for value in values)
    name = getattr(function, "attr", getattr(function, "id", ""))
    if name not in names.functions:
        return name in PASS_ON and hard_coded
    body = names.functions[name]
    others = {other: f for other, f in names.functions.items() if other != name}
    inner = Names(dict(names.values), others)  # without itself: recursion counts as computed
    inner.values.update(dict.fromkeys((argument.arg for argument in body.args.args), hard_coded))
    for statement in body.body:
        _learn(statement, inner)
    returns = [n.value for n in ast.walk(body) if isinstance(n, ast.Return) and n.value]
    return bool(returns) and all(is_hard_coded(value, inner) for value in returns)


def _learn(statement: ast.stmt, names: Names) -> None:
    """Notes the names that a statement binds, nested ones too, but not those inside a function."""
    match statement:
        case ast.FunctionDef():
            names.functions[statement.name] = statement
            return
        case ast.Assign(targets, value):
            for target in targets:
                _assign(target, is_hard_coded(value, names), names)
        case ast.AnnAssign(target, _, ast.expr() as value) | ast.For(target, value):
            _assign(target, is_hard_coded(value, names), names)
        case ast.AugAssign(target, _, value):
            _assign(target, is_hard_coded(target, names) and is_hard_coded(value, names), names)
        case ast.Expr(ast.Call(ast.Attribute(ast.Name() as changed, _), args)):
            # figures.append(measured): the list was hard-coded while empty, and is no longer
            if not all(is_hard_coded(value, names) for value in args):
                _assign(changed, False, names)
    for inner in ast.iter_child_nodes(statement):
        if isinstance(inner, ast.stmt):
            _learn(inner, names)


def _assign(target: ast.expr, hard_coded: bool, names: Names) -> None:
    match target:
        case ast.Name(name):
            names.values[name] = hard_coded
        case ast.Tuple(parts) | ast.List(parts):
            for part in parts:
                _assign(part, hard_coded, names)
        case ast.Subscript(inner) | ast.Attribute(inner) | ast.Starred(inner) if not hard_coded:
            _assign(inner, hard_coded, names)  # one computed part makes it computed
