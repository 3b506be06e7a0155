"""Find the public names that no executed example on the project's pages uses. Runs nothing itself.

An example counts if a test runs it: a block marked `python`, or a file of a story (`python file=NAME`).
An import alone is no example. A method counts also by its async twin, which has an `a` in front.
"""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Iterable, Iterator
from typing import Final

from fairlane import _public
from tools.pages import blocks, pages

_STORY: Final = "python file="


def executed(text: str) -> Iterator[str]:
    r"""Return the Python source of each block of a page that a test runs.

    >>> list(executed("```python\nx = 1\n```\n```python sketch\ny = 2\n```\n"))
    ['x = 1\n']
    """
    for block in blocks(text):
        if block.info == "python" or block.info.startswith(_STORY):
            has_prompt = ">>> " in block.text
            examples = doctest.DocTestParser().get_examples(block.text) if has_prompt else ()
            yield "".join(one.source for one in examples) if has_prompt else block.text


def used(source: str) -> set[str]:
    r"""Return the names that code uses: plain names and attributes, but not what it only imports.

    >>> sorted(used("from fairlane import Queue, State\nprint(State.READY)"))
    ['READY', 'State', 'print']
    """
    nodes = list(ast.walk(ast.parse(source)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def methods() -> list[str]:
    """Return `Class.method` for each public method of each public class, without the async twins."""
    found: list[str] = []
    for name in _public.__all__:
        value = getattr(_public, name)
        if not inspect.isclass(value) or issubclass(value, BaseException):
            continue
        members = inspect.getmembers(value, inspect.isroutine)
        own = {one for one, member in members if not one.startswith("_") and _is_ours(member)}
        found += [f"{name}.{one}" for one in sorted(own) if not (one.startswith("a") and one[1:] in own)]
    return found


def _is_ours(member: object) -> bool:
    """Tell our methods from inherited ones, and from the names of other libraries that only raise."""
    is_method = "<locals>" not in str(getattr(member, "__qualname__", "<locals>"))
    return is_method and str(getattr(member, "__module__", "")).startswith("fairlane.")


def without_example(names: Iterable[str], texts: Iterable[str]) -> list[str]:
    r"""Return those of the names that no executed block of the pages uses.

    >>> without_example(["Queue", "Job.cancel"], ["```python\njob.acancel()\n```\n"])
    ['Queue']
    """
    seen = {name for text in texts for source in executed(text) for name in used(source)}
    return [name for name in names if not {last := name.rpartition(".")[2], f"a{last}"} & seen]


def all_pages() -> list[str]:
    """Return the text of every page of the project."""
    return [page.read_text(encoding="utf-8") for page in pages()]


if __name__ == "__main__":
    print("\n".join(without_example([*_public.__all__, *methods()], all_pages())))
