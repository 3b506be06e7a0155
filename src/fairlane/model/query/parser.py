"""Read the text of a query as a tree. Knows no field and no kind of value.

    query  = some { "or" some }
    some   = one { one }                terms side by side must all hold
    one    = "-" one | "(" query ")" | term
    term   = field ":" value { "," value } | value
    value  = "quoted" | any text without spaces, parentheses, commas and quotes

Inside quotes a backslash takes the next character as it is.
"""

from __future__ import annotations

import re
from typing import Final

from fairlane.model.query.syntax import AllOf, AnyOf, Negation, Node, QueryError, Term, WrittenValue

MAX_CHARS: Final = 2_000
MAX_TERMS: Final = 100
MAX_DEPTH: Final = 20

_FIELD: Final = re.compile(r'([A-Za-z_][^\s:,()"]*):')
_BARE: Final = re.compile(r'[^\s,()"]+')
_SPACE: Final = re.compile(r"\s*")
_OR: Final = re.compile(r"or(?=[\s()]|$)", re.IGNORECASE)


def parse(text: str) -> Node:
    """Return the tree of a query; `QueryError` says what is wrong, and where.

    >>> parse("state:dead,ready").values[1].text
    'ready'
    >>> parse("(a")
    Traceback (most recent call last):
        ...
    fairlane.model.query.syntax.QueryError: this parenthesis is not closed
      (a
      ^
    """
    if len(text) > MAX_CHARS:
        problem = f"a query has at most {MAX_CHARS} characters, not {len(text)}"
        raise QueryError(problem, f"{text[:40]}…", 0)
    reader = _QueryReader(text)
    node = reader.query(0)
    if not reader.is_at_end():
        raise reader.error("nothing is open that this parenthesis could close")
    return node


class _QueryReader:
    """Reads a query from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._terms = 0

    def error(self, problem: str, position: int | None = None) -> QueryError:
        """Return an error at a position, by default at what comes next."""
        return QueryError(problem, self._text, self._at if position is None else position)

    def is_at_end(self) -> bool:
        """Whether only space is left."""
        self._at = self._end_of(_SPACE)
        return self._at == len(self._text)

    def query(self, depth: int) -> Node:
        """Read alternatives, up to the end or to a closing parenthesis."""
        nodes = [self._some(depth)]
        while self._takes_or():
            nodes.append(self._some(depth))
        if len(nodes) == 1:
            return nodes[0]
        for node in nodes:
            if node == AllOf(()):
                raise self.error("something is missing beside this 'or'", self._last_or)
        return AnyOf(tuple(nodes))

    def _takes_or(self) -> bool:
        if self.is_at_end() or _OR.match(self._text, self._at) is None:
            return False
        self._last_or = self._at
        self._at += 2
        return True

    def _some(self, depth: int) -> Node:
        nodes: list[Node] = []
        while not self.is_at_end() and self._next() != ")" and _OR.match(self._text, self._at) is None:
            nodes.append(self._one(depth))
        return nodes[0] if len(nodes) == 1 else AllOf(tuple(nodes))

    def _one(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.error(f"a query nests at most {MAX_DEPTH} deep")
        start = self._at
        if self._next() == "-":
            self._at += 1
            if self.is_at_end() or self._next() == ")":
                raise self.error("something is missing behind this '-'", start)
            return Negation(self._one(depth + 1))
        if self._next() == "(":
            self._at += 1
            node = self.query(depth + 1)
            if self.is_at_end():
                raise self.error("this parenthesis is not closed", start)
            self._at += 1
            return node
        return self._term()

    def _term(self) -> Term:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise self.error(f"a query has at most {MAX_TERMS} terms")
        start, field = self._at, ""
        named = _FIELD.match(self._text, self._at)
        if named is not None:
            field, self._at = named[1], named.end()
        values = [self._value(field)]
        while field and self._at < len(self._text) and self._next() == ",":
            self._at += 1
            values.append(self._value(field))
        return Term(field, tuple(values), start)

    def _value(self, field: str) -> WrittenValue:
        start = self._at
        if start < len(self._text) and self._next() == '"':
            return self._quoted()
        self._at = self._end_of(_BARE)
        if self._at == start:
            problem = f"a value is missing behind {field}:" if field else "a term is missing here"
            raise self.error(problem)
        return WrittenValue(self._text[start : self._at], start)

    def _quoted(self) -> WrittenValue:
        start, found = self._at, ""
        self._at += 1
        while self._at < len(self._text) and self._next() != '"':
            self._at += self._next() == "\\" and self._at + 1 < len(self._text)
            found += self._next()
            self._at += 1
        if self._at == len(self._text):
            raise self.error("this quote is not closed", start)
        self._at += 1
        return WrittenValue(found, start, is_quoted=True)

    def _next(self) -> str:
        return self._text[self._at]

    def _end_of(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self._at)
        return self._at if found is None else found.end()
