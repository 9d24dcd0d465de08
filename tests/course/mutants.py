"""Small faults put into a solution, one at a time, to see whether its check notices.

Cosmic Ray has operators for arithmetic, comparisons, numbers and loops. Added here are the faults
usual with tensors: calls left out; operands, arguments and parameters exchanged; keywords, slice
bounds and statements dropped; a sum in place of a mean.
"""

import ast
import copy
import difflib
import itertools
import re
from collections.abc import Iterator

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

# The variable operators need the name of a variable; "+1", "~1" and "not 1" for "-1" add nothing to
# the "1" that Delete_USub makes of it, nor "is" to "==" where Python keeps one copy of a text.
LEFT_OUT = re.compile(r"core/(Variable|ReplaceUnaryOperator_U|ReplaceComparison\w+[qtE]_Is)")
SYMMETRIC = {"transpose", "maximum", "minimum"}  # exchanging two arguments changes nothing
RELATIVES = {"sum": "mean", "amax": "amin", "maximum": "minimum", "zeros_like": "ones_like"}


def mutants(source: str) -> dict[str, str]:
    """All mutants of a source text, without its comments, by "old line -> new line"."""
    original = ast.unparse(ast.parse(source))
    table: dict[str, str] = {}
    for mutant in itertools.chain(_general(original), _about_tensors(ast.parse(original))):
        try:
            mutant = ast.unparse(ast.parse(mutant))
        except SyntaxError:
            continue
        if mutant != original and mutant not in table.values():
            text = _description(original, mutant)
            while text in table:  # the same line stands in two places
                text += " (again)"
            table[text] = mutant
    return table


def makes(mutant: str, change: str) -> bool:
    """Whether a mutant, "old line -> new line", makes a change of part of its line, "old -> new"."""
    (before, after), (old, new) = (text.split(" -> ", 1) for text in (mutant, change))
    places = (match.span() for match in re.finditer(re.escape(old), before))
    return any(before[:start] + new + before[end:] == after for start, end in places)


def _general(source: str) -> Iterator[str]:
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if not LEFT_OUT.match(name):
            operator = get_operator(name)()
            for i in range(sum(len(list(operator.mutation_positions(node))) for node in nodes)):
                yield mutate_code(source, operator, i)


def _about_tensors(tree: ast.Module) -> Iterator[str]:
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        parameters = [argument.arg for argument in function.args.args]
        for statement in function.body:
            for node in ast.walk(statement):
                for replacement in _replacements(node, parameters):
                    # A deep copy takes what its memo holds for a node as the copy of that node.
                    yield ast.unparse(copy.deepcopy(tree, {id(node): replacement}))


def _replacements(node: ast.AST, parameters: list[str]) -> Iterator[ast.AST]:
    """The nodes that might stand in its place by mistake."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return  # a docstring
        case ast.Call(func=function, args=arguments, keywords=keywords):
            if isinstance(function, ast.Attribute):
                yield function.value  # x.transpose(-2, -1) -> x
            yield from arguments[:1]  # math.sqrt(x) -> x
            pairs = 0 if getattr(function, "attr", "") in SYMMETRIC else len(arguments) - 1
            for i in range(pairs):
                swapped = [*arguments[:i], arguments[i + 1], arguments[i], *arguments[i + 2 :]]
                yield ast.Call(function, swapped, keywords)
            for i in range(len(keywords)):
                yield ast.Call(function, arguments, keywords[:i] + keywords[i + 1 :])
        case ast.BinOp(left, ast.MatMult() | ast.Sub() | ast.Div() as operator, right):
            yield ast.BinOp(right, operator, left)
        case ast.Attribute(value=value, attr=name) if name in RELATIVES:
            yield ast.Attribute(value, RELATIVES[name], node.ctx)
        case ast.Attribute(value=value, attr="T" | "mT"):
            yield value
        case ast.Name(id=name, ctx=ast.Load()) if name in parameters:
            yield from (ast.Name(other, node.ctx) for other in parameters if other != name)
        case ast.Slice(lower, upper, step):
            yield from (ast.Slice(None, upper, step), ast.Slice(lower, None, step))
        case ast.stmt():
            yield ast.Pass()


def _description(original: str, mutant: str) -> str:
    lines = list(difflib.ndiff(original.splitlines(), mutant.splitlines()))
    old, new = (" / ".join(line[2:].strip() for line in lines if line[0] == sign) for sign in "-+")
    return f"{old} -> {new}"
