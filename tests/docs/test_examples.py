"""Every public name has an example on a page that the tests run, and a name without one is found."""

from __future__ import annotations

from typing import Final

import pytest

from fairlane import _public
from tools.doc_examples import all_pages, executed, methods, without_example

FOR_STORES: Final = {"Backoff.micros", "Lane.shares", "Rate.next_allowed_from"}
"""Methods of public values that only Fairlane's own code calls."""


def test_every_public_name_has_an_executed_example() -> None:
    """Add one where a reader looks for it: docs/reference/api.md, or the how-to page of its feature."""
    assert without_example(_public.__all__, all_pages()) == []


def test_every_public_method_has_an_executed_example() -> None:
    """By its own name or that of its async twin."""
    assert without_example(set(methods()) - FOR_STORES, all_pages()) == []


def test_the_exempt_methods_exist() -> None:
    """An exemption ends with its method."""
    assert set(methods()) >= FOR_STORES


@pytest.mark.parametrize(
    "block",
    [
        "```python\nfrom fairlane import Queue\n```\n",  # an import alone
        "```python sketch\nQueue('mail')\n```\n",  # not run
        "```text\nQueue('mail')\n```\n",
        "Queue in `Queue('mail')` and in prose\n",
    ],
)
def test_a_name_that_no_executed_code_uses_is_found(block: str) -> None:
    """The check can fail."""
    assert without_example(["Queue"], [block]) == ["Queue"]


@pytest.mark.parametrize(
    "block",
    [
        "```python\nQueue('mail')\n```\n",
        "```python\n>>> fairlane.Queue('mail').name\n'mail'\n```\n",
        "```python file=shop.py\nq: Queue\n```\n",
    ],
)
def test_a_name_that_executed_code_uses_has_its_example(block: str) -> None:
    """As it stands, at a prompt, or as a file of a story."""
    assert without_example(["Queue"], [block]) == []
    assert len(list(executed(block))) == 1
