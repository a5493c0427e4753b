"""Conditions: one line of Python-like logic over memory, never executed as code.

``session.billing.amount > 0 and not session.project.blocked``

The text is parsed with `ast`, checked against a whitelist (``and or not``, comparisons, constants and
three-part references) and compiled to closures. There are no calls, subscripts, operators or names.
"""

from __future__ import annotations

import ast
import logging
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

log = logging.getLogger(__name__)

MAX_CHARS = 2000

Read = Callable[[str, str], Any]
"""Looks up ``(namespace, entry)`` in memory; unset reads None."""
_Evaluate = Callable[[Read], Any]


class ConditionSyntaxError(ValueError):
    """The text is no condition. ``remedy`` says what would be one."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message, self.remedy = message, remedy


@dataclass(frozen=True, slots=True)
class Reference:
    """``session.<namespace>.<entry>``; the namespace is a skill id or ``project``."""

    namespace: str
    entry: str

    def __str__(self) -> str:
        return f"session.{self.namespace}.{self.entry}"


@dataclass(frozen=True, slots=True)
class Condition:
    source: str
    references: tuple[Reference, ...]
    _evaluate: _Evaluate = field(repr=False, compare=False)

    def evaluate(self, read: Read) -> bool:
        """Return the value as a bool.

        Raises:
            TypeError: The values cannot be compared (``None > 1``).
        """
        return bool(self._evaluate(read))

    def holds(self, read: Read) -> bool:
        """Return the value for a gate: a condition that cannot be evaluated does not hold."""
        try:
            return self.evaluate(read)
        except TypeError as fault:
            log.warning("condition %r cannot be evaluated and counts as false: %s", self.source, fault)
            return False


_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_LOWER = {"true": "True", "false": "False", "null": "None", "none": "None"}


def parse_condition(text: str) -> Condition:
    """Parse one condition; line breaks count as spaces.

    Raises:
        ConditionSyntaxError: It is empty, too long, or uses anything outside the grammar.
    """
    source = " ".join(text.split())
    if not source:
        raise ConditionSyntaxError("The condition is empty.", "Write an expression such as session.project.known.")
    if len(source) > MAX_CHARS:
        raise ConditionSyntaxError(f"The condition is longer than {MAX_CHARS} characters.", "Let a tool decide it.")
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
        raise ConditionSyntaxError(f"Not a condition: {source!r}.", "Check quotes and parentheses.") from fault
    references: list[Reference] = []
    try:
        evaluate = _compile(tree.body, references)
    except RecursionError as fault:
        raise ConditionSyntaxError("The condition is nested too deeply.", "Let a tool decide it.") from fault
    return Condition(source, tuple(dict.fromkeys(references)), evaluate)


def _compile(node: ast.expr, references: list[Reference]) -> _Evaluate:
    if isinstance(node, ast.BoolOp):
        return _bool_op(node, references)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _compile(node.operand, references)
        return lambda read: not inner(read)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        if isinstance(number, int | float) and not isinstance(number, bool):
            return lambda read: -number
    if isinstance(node, ast.Compare):
        return _compare(node, references)
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
        value = node.value
        return lambda read: value
    if isinstance(node, ast.Attribute):
        reference = _reference(node)
        references.append(reference)
        namespace, entry = reference.namespace, reference.entry
        return lambda read: read(namespace, entry)
    raise _refuse(node)


def _bool_op(node: ast.BoolOp, references: list[Reference]) -> _Evaluate:
    parts = [_compile(value, references) for value in node.values]
    if isinstance(node.op, ast.And):
        return lambda read: all(part(read) for part in parts)
    return lambda read: any(part(read) for part in parts)


def _compare(node: ast.Compare, references: list[Reference]) -> _Evaluate:
    first = _compile(node.left, references)
    rest: list[tuple[Callable[[Any, Any], Any], _Evaluate]] = []
    for op, operand in zip(node.ops, node.comparators, strict=True):
        compare = _COMPARE.get(type(op))
        if compare is None:
            raise ConditionSyntaxError("`in` is not part of conditions.", "Write x == 'a' or x == 'b'.")
        if isinstance(op, ast.Is | ast.IsNot):
            # Only identity with None, True and False means the same in every Python.
            compare = _same if isinstance(op, ast.Is) else lambda a, b: not _same(a, b)
        rest.append((compare, _compile(operand, references)))

    def evaluate(read: Read) -> bool:
        left = first(read)
        for compare, right_of in rest:
            right = right_of(read)
            if not compare(left, right):
                return False
            left = right
        return True

    return evaluate


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def _reference(node: ast.Attribute) -> Reference:
    parts: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        parts.append(inner.id)
        parts.reverse()
        if len(parts) == 3 and parts[0] == "session":
            return Reference(parts[1], parts[2])
    raise ConditionSyntaxError(
        f"{ast.unparse(node)!r} is no reference.", "References have three parts: session.<skill id or project>.<entry>."
    )


def _refuse(node: ast.expr) -> ConditionSyntaxError:
    if isinstance(node, ast.Name):
        if node.id in _LOWER:
            return ConditionSyntaxError(f"Write {_LOWER[node.id]}, not {node.id}.")
        return ConditionSyntaxError(
            f"{node.id!r} is no reference.", f"Write session.<skill id or project>.{node.id}, or quote it as text."
        )
    if isinstance(node, ast.Call):
        return ConditionSyntaxError(
            "A condition cannot call anything.", "Let a tool compute it and write it to memory."
        )
    return ConditionSyntaxError(
        f"{ast.unparse(node)!r} is not part of conditions.", "Use and, or, not, comparisons, constants and references."
    )
