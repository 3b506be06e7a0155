"""`with app.breaker("mail"):` — pass a breaker, and count how the block ended (S110)."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Self
from uuid import UUID

from fairlane.app.ambient import current_ambient
from fairlane.app.client import Client
from fairlane.app.guards.breaker_memory import Word, of_permit
from fairlane.model.errors import StoreError
from fairlane.model.guards.errors import BreakerOpen
from fairlane.model.instants import LAST_INSTANT, SECOND, Instant, Micros, to_datetime, to_micros
from fairlane.model.policy.declared import Breaker
from fairlane.model.retry.outcome import Outcome, Retry
from fairlane.model.scope import SYSTEM, Scope
from fairlane.store.contract.breakers import BreakerKey, EnterRequest

_LOOK_AGAIN: Final[Micros] = 10 * SECOND
"""When a job comes back that found others passing; sooner if the breaker opens for less."""


class BreakerBlock:
    """One use of a breaker, plain or async. Enter each only once."""

    def __init__(self, client: Client, breaker: Breaker) -> None:
        """Ask nothing yet."""
        self._client = client
        self._breaker = breaker
        self._tenant = SYSTEM
        self._permit: UUID | None = None

    def __enter__(self) -> Self:
        """Pass, or raise `BreakerOpen`."""
        if not self._passes():
            self._client.portal.run(self._ask())
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Count how the block has ended."""
        if self._must_tell(error):
            self._client.portal.run(self._tell(error))

    async def __aenter__(self) -> Self:
        """Pass, or raise `BreakerOpen`."""
        if not self._passes():
            await self._ask()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Count how the block has ended."""
        if self._must_tell(error):
            await self._tell(error)

    # ── on the way in ─────────────────────────────────────────────────────────

    def _passes(self) -> bool:
        """Whether what is known suffices to pass; `BreakerOpen` if it suffices not to."""
        ambient, memory = current_ambient(), self._client.breaker_memory
        self._tenant = SYSTEM if ambient is None else ambient.tenant
        word = memory.word(self._breaker.name, self._tenant)
        if word is None or not memory.is_fresh(word):
            return False
        if word.phase == "open":
            raise self._open(word.store_until, word.until - self._client.clock.elapsed())
        return word.phase == "closed"

    async def _ask(self) -> None:
        """Ask the store; while it is away, what was known last holds, and who knows nothing passes."""
        name, memory = self._breaker.name, self._client.breaker_memory
        before = memory.word(name, self._tenant)
        ambient = current_ambient()
        job = None if ambient is None or ambient.job is None else ambient.job.id
        try:
            await memory.tell(self._client.store, about=(BreakerKey(name, self._tenant),))
            if self._passes():
                return
            request = EnterRequest(scope=Scope.all(), name=name, tenant=self._tenant, job=job)
            reply = await self._client.store.breakers.enter(request)
        except StoreError:
            self._pass_by(before)
            return
        if not reply.is_allowed:
            raise self._open(None, 0)
        self._permit = None if reply.is_closed else job

    def _pass_by(self, word: Word | None) -> None:
        if word is not None and word.phase != "closed":
            raise self._open(None, 0)

    def _open(self, until: Instant | None, wait: Micros) -> BreakerOpen:
        """Return the error; without a known end the job comes back soon."""
        is_known = until is not None and until < LAST_INSTANT
        retry_in = wait if is_known else min(_LOOK_AGAIN, to_micros(self._breaker.open_for))
        return BreakerOpen(
            self._breaker.name,
            to_datetime(until) if until is not None and is_known else None,
            on_open=self._breaker.on_open,
            retry_in=max(SECOND, retry_in),
        )

    # ── on the way out ────────────────────────────────────────────────────────

    def _must_tell(self, error: BaseException | None) -> bool:
        """Note the outcome; return whether the store must hear of it now."""
        passed = outcome_of(self._breaker, error)
        if self._permit is not None:
            return True
        if passed is not None:
            note = self._client.breaker_memory.note
            note(self._breaker.name, self._tenant, succeeded=int(passed), failed=int(not passed))
        return passed is False

    async def _tell(self, error: BaseException | None) -> None:
        """Tell it; a permit whose outcome the store does not hear of is free when the job has ended."""
        passed = outcome_of(self._breaker, error)
        name, job = self._breaker.name, self._permit
        outcomes = () if job is None else (of_permit(name, self._tenant, job, passed=passed),)
        with suppress(StoreError):
            await self._client.breaker_memory.tell(self._client.store, *outcomes)


def outcome_of(breaker: Breaker, error: BaseException | None) -> bool | None:
    """Return whether the protected call succeeded; None if its end says nothing about what it called.

    A `Retry` says that it failed; any other outcome, and an error of a class that does not count, nothing.
    """
    if error is None:
        return True
    if isinstance(error, Retry):
        return False
    if isinstance(error, Outcome | BreakerOpen) or not isinstance(error, breaker.errors):
        return None
    return False
