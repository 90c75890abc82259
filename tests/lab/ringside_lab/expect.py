"""Expectations: one expression over what a run has left behind.

A small part of Python's expressions, evaluated over plain values: names are the files that the guest
emitted, `a.b` looks up a key. There are no calls but those of FUNCTIONS, and nothing can be changed.
"""

import ast
import operator
from typing import Any

FUNCTIONS = {"abs": abs, "len": len, "max": max, "min": min, "sum": sum, "sorted": sorted}

OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
    ast.Not: operator.not_, ast.USub: operator.neg,
}


class ExpectationError(Exception):
    """The expression cannot be evaluated over these values."""


def parse(expression: str) -> ast.expr:
    """The expression as a tree; refuses what `evaluate` would not know."""
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpectationError(f"{expression!r}: {error.msg}") from None
    known = (ast.Name, ast.Load, ast.Store, ast.Attribute, ast.Subscript, ast.Constant, ast.Compare,
             ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.BinOp, ast.Call, ast.List, ast.Tuple,
             ast.GeneratorExp, ast.ListComp, ast.comprehension, *OPERATORS)
    for node in ast.walk(tree):
        if not isinstance(node, known):
            raise ExpectationError(f"{expression!r}: {type(node).__name__} is not part of the language")
        if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.keywords or
                                           node.func.id not in FUNCTIONS):
            raise ExpectationError(f"{expression!r}: the functions are {', '.join(FUNCTIONS)}")
    return tree


def evaluate(tree: ast.expr, values: dict[str, Any]) -> Any:
    match tree:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _look_up(values, name, "there is no file or value")
        case ast.Attribute(value=inner, attr=name):
            return _look_up(evaluate(inner, values), name, f"{ast.unparse(inner)} has no")
        case ast.Subscript(value=inner, slice=key):
            return _look_up(evaluate(inner, values), evaluate(key, values), f"{ast.unparse(inner)} has no")
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(evaluate(argument, values) for argument in arguments))
        case ast.UnaryOp(op=op, operand=operand):
            return OPERATORS[type(op)](evaluate(operand, values))
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](evaluate(left, values), evaluate(right, values))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(evaluate(part, values) for part in parts)
        case ast.BoolOp(values=parts):
            return any(evaluate(part, values) for part in parts)
        case ast.Compare(left=left, ops=ops, comparators=others):
            before = evaluate(left, values)
            for op, other in zip(ops, others):
                after = evaluate(other, values)
                if not OPERATORS[type(op)](before, after):
                    return False
                before = after
            return True
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [evaluate(part, values) for part in parts]
        case ast.GeneratorExp(elt=element, generators=[one]) | ast.ListComp(elt=element, generators=[one]):
            assert isinstance(one.target, ast.Name)
            scopes = ({**values, one.target.id: item} for item in evaluate(one.iter, values))
            return [evaluate(element, scope) for scope in scopes
                    if all(evaluate(test, scope) for test in one.ifs)]
    raise ExpectationError(f"{ast.unparse(tree)} is not part of the language")


def _look_up(container: Any, key: Any, missing: str) -> Any:
    try:
        return container[key]
    except (KeyError, IndexError, TypeError):
        raise ExpectationError(f"{missing} {key}") from None


def explain(tree: ast.expr, values: dict[str, Any]) -> list[str]:
    """The values of the parts that an expectation compares, for the report of a failure."""
    bound = {node.target.id for node in ast.walk(tree)
             if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name)}
    lines: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Attribute, ast.Subscript, ast.Name, ast.Call, ast.ListComp)):
            continue
        free = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)} - set(FUNCTIONS)
        comprehends = any(isinstance(inner, ast.comprehension) for inner in ast.walk(node))
        if not free or (free & bound and not comprehends):
            continue
        try:
            value = evaluate(node, values)
            if isinstance(value, dict):
                continue  # its parts are shown
            shown = repr(value)
        except (ExpectationError, TypeError, ValueError, ArithmeticError) as error:
            shown = f"({error})"
        line = f"{ast.unparse(node)} = {shown}"
        # Whole documents explain nothing.
        if len(shown) <= 200 and line not in lines:
            lines.append(line)
    return lines
