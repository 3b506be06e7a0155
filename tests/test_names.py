"""Names are for readers: one class name stands for one thing, and coined words are explained."""

from __future__ import annotations

from collections import Counter

import pytest

from fairlane.model.lifecycle.states import State
from tools.architecture import PACKAGE, Source, sources
from tools.names import (
    FILES,
    GLOSSARY,
    OFTEN,
    ORDINARY,
    defined_names,
    glossary_entries,
    glossary_words,
    ordinary_words,
    shared_class_names,
    unexplained_words,
    unused_words,
)

# ── the package ──────────────────────────────────────────────────────────────


def test_a_class_name_stands_for_one_thing() -> None:
    """Only the three stores, which are alike on purpose, share names."""
    assert "\n".join(shared_class_names(sources(PACKAGE))) == ""


def test_words_that_are_met_often_are_ordinary_or_explained() -> None:
    """A reader who does not know a word finds it in the glossary."""
    known = ordinary_words(ORDINARY.read_text("utf-8")) | glossary_words(GLOSSARY.read_text("utf-8"))
    assert "\n".join(unexplained_words(sources(PACKAGE), known)) == ""


def test_the_ordinary_words_are_used() -> None:
    """The list stays short enough to be read: a word goes with the last name that has it."""
    assert "\n".join(unused_words(sources(PACKAGE), ordinary_words(ORDINARY.read_text("utf-8")))) == ""


def test_no_word_is_both_ordinary_and_coined() -> None:
    """A word that the glossary explains has a narrower meaning here than elsewhere."""
    ordinary = ordinary_words(ORDINARY.read_text("utf-8"))
    assert sorted(ordinary & glossary_entries(GLOSSARY.read_text("utf-8"))) == []


def test_the_glossary_explains_the_words_that_stay() -> None:
    """The tables are read: a changed layout of the page must not empty the search."""
    coined = "tenant lane slot strand gate fence lease claim settle park headroom duty lead outbox relay home"
    assert {*coined.split(), "oracle"} - glossary_words(GLOSSARY.read_text("utf-8")) == set()


def test_the_glossary_explains_each_word_once() -> None:
    """Of two entries one would be changed and the other forgotten."""
    lines = GLOSSARY.read_text("utf-8").splitlines()
    words = Counter(line.split("|")[1].strip() for line in lines if line.startswith("| "))
    assert {word for word, times in words.items() if times > 1} == {"word"}  # the head of each table


def test_the_glossary_explains_every_state() -> None:
    """A state without an entry has no meaning for a reader."""
    assert {state.value for state in State} - glossary_words(GLOSSARY.read_text("utf-8")) == set()


# ── the checks themselves ────────────────────────────────────────────────────

CLASS = "class Lane: ..."


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("model.policy.declared", "worker.lane_state"),
        ("model.policy.declared", "store.sqlite.threads"),
        ("store.sqlite.threads", "store.sqlite.claims.facet"),
        ("store.contract.jobs", "store.redis.jobs.facet"),
    ],
)
def test_a_name_that_two_modules_define_is_found(one: str, other: str) -> None:
    """Also inside one store, and between the contract and a store."""
    found = shared_class_names([Source(f"fairlane.{one}", CLASS), Source(f"fairlane.{other}", CLASS)])
    assert found == [f"Lane is a class in fairlane.{one}, fairlane.{other}; one name, one thing"]


def test_a_name_that_a_module_defines_twice_is_found() -> None:
    """A class inside a function hides no better."""
    text = f"{CLASS}\ndef f():\n    {CLASS}"
    assert len(shared_class_names([Source("fairlane.model.job", text)])) == 1


def test_twins_of_the_stores_share_a_name() -> None:
    """What is the same part of each store is called the same."""
    twins = [Source(f"fairlane.store.{store}.wake", CLASS) for store in ("sqlite", "postgres", "redis")]
    assert shared_class_names(twins) == []


def names_with(word: str, number: int, files: int) -> list[Source]:
    """Define so many names with a word, spread over so many modules."""
    lines: list[list[str]] = [[] for _ in range(files)]
    for count in range(number):
        lines[count % files].append(f"def {word}_x{chr(97 + count)}(): ...")
    return [Source(f"fairlane.m{chr(97 + at)}", "\n".join(defs)) for at, defs in enumerate(lines)]


def test_a_coined_word_is_found_where_it_is_met_often() -> None:
    """From so many names in so many files on; it may be explained in any form."""
    (found,) = unexplained_words(names_with("veil", OFTEN, FILES), {"fairlane"})
    assert found.startswith(f"veil: {OFTEN} names, such as veil_x")
    assert unexplained_words(names_with("veil", OFTEN, FILES), {"veil"}) == []
    assert unexplained_words(names_with("veils", OFTEN, FILES), {"veil"}) == []


def test_an_ordinary_word_without_a_name_is_found() -> None:
    """Any form of it in a name is a use."""
    found = unused_words([Source("fairlane.m", "def policies(): ...")], {"policy", "veil"})
    assert found == ["veil: no name has it; take it out of the list"]


@pytest.mark.parametrize(("number", "files"), [(OFTEN - 1, FILES), (OFTEN, FILES - 1)])
def test_a_rare_word_needs_no_entry(number: int, files: int) -> None:
    """It is explained where it stands."""
    assert unexplained_words(names_with("veil", number, files), set()) == []


def test_every_kind_of_definition_counts() -> None:
    """Modules, classes, functions, parameters, fields and constants; not what is merely used."""
    text = "CARD = 1\nclass Desk:\n    bell: int = other\n    def ring(self, tone): return veil"
    assert defined_names(Source("fairlane.worker.floor", text)) == {
        *("fairlane", "worker", "floor", "CARD", "Desk", "bell", "ring", "self", "tone"),
    }
