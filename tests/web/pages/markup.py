"""Read a page as a browser would, and find what no page of ours may have."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from typing import Final

VOID: Final = frozenset(["meta", "link", "input", "br", "img", "hr", "source", "use", "rect", "line", "path"])
_LABELLED: Final = frozenset(["input", "select", "textarea"])


class Markup(HTMLParser):
    """A page: `wrong` is what is wrong with it, `forms` what it sends, `links` where it leads.

    In a field that must be filled in, somebody has typed 1.
    """

    def __init__(self, html: str) -> None:
        """Read it all."""
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.tags: list[str] = []
        self.text = ""
        self._open: list[tuple[str, dict[str, str]]] = []
        self.feed(html)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag, _ in self._open]
        twice = {id for id in self.ids if self.ids.count(id) > 1}
        self.wrong += [f"id {id} stands twice" for id in sorted(twice)]
        if self.tags.count("h1") != 1:
            self.wrong.append(f"{self.tags.count('h1')} h1")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element, and what is wrong with its attributes."""
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        if tag == "script" and not given.get("src", "").startswith("/static/"):
            self.wrong.append("a script of its own")
        if tag == "style" or "style" in given:
            self.wrong.append(f"a style in <{tag}>")
        self.wrong += [f"{name} in <{tag}>" for name in given if name.startswith("on")]
        if given.get("href", "").lower().startswith("javascript:"):
            self.wrong.append("a link that is a script")
        if "data-live" in given and "id" not in given:
            self.wrong.append(f"<{tag}> is live and has no id")
        if "data-live" in given and any("data-live" in attributes for _, attributes in self._open):
            self.wrong.append(f"live {given.get('id')} is inside another")
        if "id" in given:
            self.ids.append(given["id"])
        self._note(tag, given)
        if tag not in VOID:
            self._open.append((tag, given))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that closes itself, as those of SVG do."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        if tag in VOID:
            return
        if not self._open or self._open[-1][0] != tag:
            self.wrong.append(f"</{tag}> closes {self._open[-1][0] if self._open else 'nothing'}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        """Collect the text."""
        self.text += data

    def _note(self, tag: str, given: dict[str, str]) -> None:
        inside = {outer for outer, _ in self._open}
        if tag == "form":
            self.forms.append((given.get("action", ""), {}))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        has_label = "label" in inside or "aria-label" in given or given.get("type") == "hidden"
        if tag in _LABELLED and not has_label:
            self.wrong.append(f"{tag} {given.get('name')} has no label")
        if tag in _LABELLED and "name" in given and "form" in inside:
            typed = "1" if "required" in given else ""
            self.forms[-1][1][given["name"]] = given.get("value", "") or typed
        if tag == "option" and "form" in inside and "select" in inside:
            choice = next(attributes["name"] for outer, attributes in self._open if outer == "select")
            self.forms[-1][1][choice] = self.forms[-1][1][choice] or given.get("value", "")
        if tag == "button" and "form" not in inside and given.get("type") != "button":
            self.wrong.append("a button that does nothing")
        if tag == "img" and "alt" not in given:
            self.wrong.append("an image without a text")


def words(html: str) -> str:
    """Return what the main part of a page says, in one line, with a space between any two elements."""
    main = html.partition("<main ")[2].partition("</main>")[0].partition(">")[2] or html
    return re.sub(r"\s+([.,:])", r"\1", re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", main))))
