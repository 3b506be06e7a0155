"""What is printed of a query is read as the same query, and `exactly` finds one text and no other (S78)."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.lifecycle.states import State
from fairlane.model.query.fields import ALIASES, FIELDS, STATES
from fairlane.model.query.matching import matcher
from fairlane.model.query.parser import parse
from fairlane.model.query.printing import exactly, print_query
from fairlane.model.query.syntax import AllOf, AnyOf, Negation, Node, QueryError, Term, WrittenValue
from tests.model.query.jobs import NOW, failed_job, job

NAMES = st.sampled_from([*FIELDS, *ALIASES, "arg.to", "meta.step", "tenent"])
TEXTS = st.text(alphabet=string.printable + "äß→", max_size=12)
BARE = st.text(alphabet="abor01.*<>=-:/@", min_size=1, max_size=8)


def values(texts: st.SearchStrategy[str], *, is_quoted: bool) -> st.SearchStrategy[WrittenValue]:
    """Draw values that stand in quotes, or do not."""
    return st.builds(WrittenValue, texts, st.just(0), st.just(is_quoted))


def is_bare_term(value: WrittenValue) -> bool:
    """Whether a word without a field is read as one: not as `or`, a negation, or a field with its value."""
    return value.is_quoted or (value.text[0] != "-" and ":" not in value.text and value.text != "or")


WRITTEN = values(TEXTS, is_quoted=True) | values(BARE, is_quoted=False)
TERMS = st.builds(Term, NAMES, st.lists(WRITTEN, min_size=1, max_size=3).map(tuple), st.just(0)) | st.builds(
    Term, st.just(""), WRITTEN.filter(is_bare_term).map(lambda one: (one,)), st.just(0)
)


def larger(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """Draw nodes that consist of others."""
    several = st.lists(nodes, min_size=2, max_size=3).map(tuple)
    return st.builds(Negation, nodes) | st.builds(AllOf, several) | st.builds(AnyOf, several)


NODES: st.SearchStrategy[Node] = st.recursive(TERMS, larger, max_leaves=12)


def bare(node: Node) -> Node:
    """Return a tree without its positions."""
    match node:
        case Term(field, written, _):
            return Term(field, tuple(WrittenValue(one.text, 0, one.is_quoted) for one in written), 0)
        case Negation(inner):
            return Negation(bare(inner))
        case AllOf(nodes):
            return AllOf(tuple(map(bare, nodes)))
        case AnyOf(nodes):
            return AnyOf(tuple(map(bare, nodes)))


@given(NODES)
def test_a_printed_tree_is_read_as_the_same_tree(node: Node) -> None:
    """Whatever stands in it."""
    assert bare(parse(print_query(node))) == bare(node)


@given(st.text(alphabet='abc:>=<.,*()"\\- or1', max_size=60))
def test_what_was_read_is_printed_and_read_again(text: str) -> None:
    """Any text that is a query at all, and its print is a fixed point."""
    try:
        node = parse(text)
    except QueryError:
        return
    printed = print_query(node)
    assert bare(parse(printed)) == bare(node)
    assert print_query(parse(printed)) == printed


@given(TEXTS.filter(bool))
def test_exactly_finds_this_text_and_nothing_else(text: str) -> None:
    """Also where it looks like a wildcard, a list, a quote or another query."""
    matches = matcher(exactly("corr", text), NOW)
    assert matches(job(correlation_id=text))
    assert not matches(job(correlation_id=f"{text}x"))


@pytest.mark.parametrize(
    ("word", "states"),
    [
        ("pending", {State.DELAYED, State.READY}),
        ("active", {State.RUNNING}),
        ("processing", {State.RUNNING}),
        ("completed", {State.SUCCEEDED}),
        ("failed", {State.DEAD}),
        ("retry_scheduled", {State.DELAYED}),
        ("dead_letter", {State.DEAD}),
        ("pending_review", {State.DEAD}),
    ],
)
def test_the_states_of_other_systems_are_understood(word: str, states: set[State]) -> None:
    """In a query and under the field's other name."""
    assert STATES[word] == states
    for query in (f"state:{word}", f"status:{word}"):
        assert {state for state in State if matcher(query, NOW)(job(state=state))} == states


def test_every_alias_is_its_field() -> None:
    """The same values, the same jobs, the same error."""
    for alias, name in ALIASES.items():
        kind = FIELDS[name].kind
        value = {"number": ">=1", "time": "2h", "state": "ready"}.get(kind, "mail.send")
        for one in (job(), failed_job()):
            assert matcher(f"{alias}:{value}", NOW)(one) == matcher(f"{name}:{value}", NOW)(one)
