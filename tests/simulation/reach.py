"""Whose jobs an answer is about: under the scope of one tenant, its own and nobody else's (S9)."""

from __future__ import annotations

from typing import Any
from uuid import UUID


def reached(facet: str, verb: str, value: Any) -> set[UUID]:
    """Return the jobs that a caller has seen or changed by this answer."""
    match verb:
        case "get" if facet == "dead":
            return {value.job.id} if value else set()
        case "get" | "cancel" | "run_now" | "condemn":
            return set(value)
        case "find" if facet == "dead":
            return {letter.job.id for letter in value.letters}
        case "find":
            return {job.id for job in value.jobs}
        case "revoke":
            return {one.id for one in value.jobs}
        case "peek" | "review" | "reprocess":
            return {one.id for one in value if getattr(one, "answer", None) != "not_found"}
    return set()
