"""The tree of a query, and the error that points at what cannot be understood. Knows no field."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from fairlane.model.errors import FairlaneError


class QueryError(FairlaneError, ValueError):
    """A query cannot be understood. `position` counts characters from 0; the message shows the place."""

    def __init__(self, problem: str, text: str, position: int) -> None:
        self.problem = problem
        self.text = text
        self.position = position
        super().__init__(problem, text, position)

    def __str__(self) -> str:
        return f"{self.problem}\n  {self.text}\n  {' ' * self.position}^"


class WrittenValue(msgspec.Struct, frozen=True):
    """One of the values of a term, without its quotes. A quoted one has no wildcard, range or sign."""

    text: str
    position: int
    is_quoted: bool = False


class Term(msgspec.Struct, frozen=True):
    """`field:value,value`: one of the values must hold. A term without a field is a bare word."""

    field: str
    values: tuple[WrittenValue, ...]
    position: int


class Negation(msgspec.Struct, frozen=True):
    """Not this."""

    node: Node


class AllOf(msgspec.Struct, frozen=True):
    """All of these; none is always true."""

    nodes: tuple[Node, ...]


class AnyOf(msgspec.Struct, frozen=True):
    """One of these."""

    nodes: tuple[Node, ...]


Node: TypeAlias = Term | Negation | AllOf | AnyOf
