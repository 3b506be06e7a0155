"""Write the tree of a query as its text: the parser reads the same tree from it, but for positions."""

from __future__ import annotations

import re
from typing import Final

from fairlane.model.query.syntax import AllOf, AnyOf, Negation, Node, Term, WrittenValue

_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@/-]*")
_NEEDS_QUOTES: Final = re.compile(r'[\s,()"]')


def exactly(field: str, text: str) -> str:
    r"""Return a term that compares a field with exactly this text, whatever stands in it.

    >>> exactly("tenant", "acme"), exactly("tag", 'a*, "b"')
    ('tenant:acme', 'tag:"a*, \\"b\\""')
    """
    return f"{field}:{text if _PLAIN.fullmatch(text) else _quoted(text)}"


def print_query(node: Node) -> str:
    """Return a text from which the parser reads this tree.

    >>> from fairlane.model.query.parser import parse
    >>> print_query(parse('( a or -state:dead,ready ) tag:"x y"'))
    '(a or -state:dead,ready) tag:"x y"'
    """
    match node:
        case Term():
            values = ",".join(map(_value, node.values))
            return f"{node.field}:{values}" if node.field else values
        case Negation():
            return f"-{_inner(node.node)}"
        case AllOf():
            return " ".join(map(_inner, node.nodes))
        case _:
            texts = (_inner(one) if isinstance(one, AnyOf) else print_query(one) for one in node.nodes)
            return " or ".join(texts)


def _inner(node: Node) -> str:
    """Return a part as it stands beside others: alternatives and groups in parentheses."""
    return f"({print_query(node)})" if isinstance(node, AllOf | AnyOf) else print_query(node)


def _value(value: WrittenValue) -> str:
    return _quoted(value.text) if value.is_quoted or _NEEDS_QUOTES.search(value.text) else value.text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
