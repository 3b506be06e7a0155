"""The whole project speaks the glossary's words, and the search for retired ones can find them."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

from fairlane.model.lifecycle import State
from tools.words import EXCUSES, GLOSSARY, Excuse, Term, findings, retired, texts

TERMS = retired(GLOSSARY.read_text(encoding="utf-8"))
SAMPLE = [
    Term("token", "fence"),
    Term("max_retries", "attempt"),
    Term("worker pool", "lane"),
    Term("DLQ", "dead letter"),
]


def test_no_retired_word_stands_in_source_or_documents() -> None:
    """Identifiers, docstrings, comments, messages, help texts and pages alike."""
    assert "\n".join(finding for name, text in texts() for finding in findings(name, text, TERMS)) == ""


def test_every_excuse_is_still_needed() -> None:
    """Its context holds a retired word and still stands in one of its files."""
    pages = list(texts())
    for excuse in EXCUSES:
        context = [Term(excuse.context, "")]
        assert findings("", excuse.context, TERMS, []), excuse
        assert any(
            fnmatch(name, excuse.files) and findings(name, text, context, []) for name, text in pages
        ), excuse


def test_the_glossary_retires_words() -> None:
    """The tables are read: a changed layout of the page must not empty the search."""
    assert len(TERMS) > 50
    assert {Term("token", "fence"), Term("lock", "claim"), Term("DLQ", "dead letter")} <= set(TERMS)


def test_the_glossary_explains_every_state() -> None:
    """A state without an entry has no meaning for a reader."""
    rows = {
        line.split("|")[1].strip()
        for line in GLOSSARY.read_text(encoding="utf-8").splitlines()
        if "|" in line
    }
    assert {state.value for state in State} <= rows


def test_no_word_is_both_ours_and_retired() -> None:
    """The glossary does not contradict itself."""
    assert {term.retired for term in TERMS} & {term.say for term in TERMS} == set()


@pytest.mark.parametrize(
    "text",
    [
        "def check(token): ...",
        "fencing_token = 1",
        "class FencingTokens: ...",
        "# the stale token",
        '"""Needs a token."""',
        "raise Refused('no token')",
        "max_retries=3",
        "maxRetries",
        "Two worker pools.",
        "in a worker\n    # pool",
        "into the DLQ",
    ],
)
def test_a_retired_word_is_found_wherever_it_stands(text: str) -> None:
    """In an identifier, a comment, a docstring, a message; in the singular and the plural."""
    assert len(findings("x.py", text, SAMPLE)) == 1


@pytest.mark.parametrize(
    "text", ["import tokenize", "tokenizer", "the pool of a worker", "worker. Pool", "worker\n\npool"]
)
def test_a_word_that_only_contains_a_retired_one_is_left_alone(text: str) -> None:
    """Whole parts of a name count, pieces of a word do not."""
    assert findings("x.py", text, SAMPLE) == []


def test_a_finding_says_where_and_what_to_say_instead() -> None:
    """Enough to go there and put it right."""
    assert findings("docs/a.md", "one\ntwo token", SAMPLE) == ["docs/a.md:2: 'token' is retired, say 'fence'"]


def test_an_excuse_covers_its_context_and_nothing_else() -> None:
    """The other use on the same line is still found, and so is the same one in another file."""
    excuse = Excuse("access token", "docs/*", "gives access")
    assert len(findings("docs/a.md", "an access token is no token", SAMPLE, [excuse])) == 1
    assert len(findings("src/a.py", "an access token", SAMPLE, [excuse])) == 1
