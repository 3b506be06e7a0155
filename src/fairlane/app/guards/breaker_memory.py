"""What this process has seen of breakers and not told yet, and what it was told last (S110).

A word of the store holds for four seconds. So a breaker that is closed costs a process one call in that time
at most, however often it is used; failures and the outcomes of those that passed an open one are told at
once. What a claim returns has a word of each breaker that is not closed, and every process hears of it before
it starts these jobs: so no job that was claimed after an opening passes (S124).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from uuid import UUID

from fairlane.model.errors import StoreError
from fairlane.model.guards.breaker import EVERY_TENANT, Outcomes, Phase, phase
from fairlane.model.instants import SECOND, Instant, Micros
from fairlane.model.policy.declared import Breaker
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.breakers import (
    MAX_BREAKER_OUTCOMES,
    BreakerKey,
    BreakerOutcomes,
    BreakersReply,
    BreakerWord,
    OpenBreakers,
    ReportRequest,
)

WORD_HOLDS: Final[Micros] = 4 * SECOND
"""As long as a worker waits between two renewals."""


MANY_WORDS: Final = 10_000
"""From so many on, those that no longer matter are dropped: there may be one for each tenant."""


class Word(NamedTuple):
    """What the store has said of a breaker: when, and open until when, both by our clock and by its own."""

    at: Micros
    phase: Phase
    until: Micros
    said_at: Instant
    store_until: Instant


class BreakerMemory:
    """One for each process. Any thread may use it; only `tell` asks the store.

    `declared` has the breakers that were looked up before.
    """

    def __init__(self, elapsed: Callable[[], Micros]) -> None:
        """Take the clock of this process."""
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._seen: dict[BreakerKey, tuple[int, int]] = {}
        self._words: dict[BreakerKey, Word] = {}
        self._room = MANY_WORDS
        self._cut: tuple[Micros, OpenBreakers] | None = None
        self.declared: dict[str, Breaker] = {}

    def note(self, name: str, tenant: str, *, succeeded: int = 0, failed: int = 0) -> None:
        """Note outcomes; they are told with the next call."""
        key = BreakerKey(name, tenant)
        with self._lock:
            before = self._seen.get(key, (0, 0))
            self._seen[key] = (before[0] + succeeded, before[1] + failed)

    def forget(self) -> None:
        """Forget what the store has said: it is closed, and the next one may be another."""
        with self._lock:
            self._words.clear()
            self._cut = None

    def word(self, name: str, tenant: str) -> Word | None:
        """Return the last word on a breaker for a tenant: of that of all, if that is not closed."""
        everybody, own = self._words.get(BreakerKey(name)), self._words.get(BreakerKey(name, tenant))
        return own if everybody is None or (own is not None and everybody.phase == "closed") else everybody

    def is_fresh(self, word: Word | None) -> bool:
        """Whether a word still holds; one that says until when holds until then at most.

        "Closed" does not hold once a claim has said that too many are not closed to name them.
        """
        now = self._elapsed()
        if word is None or now - word.at >= WORD_HOLDS:
            return False
        if word.phase == "closed":
            cut = self._fresh_cut()
            return cut is None or cut.now < word.said_at
        return word.phase != "open" or now < word.until

    async def tell(self, store: Store, *passed: BreakerOutcomes, about: Iterable[BreakerKey] = ()) -> None:
        """Tell the store what was seen, with the outcomes of those that passed, and hear what holds now.

        After a `StoreError` that says nothing was counted, it is told with the next call; else it is dropped,
        since an outcome that counts twice is worse than one that does not count.
        """
        with self._lock:
            keys = list(self._seen)[: MAX_BREAKER_OUTCOMES // 2]
            taken = {key: self._seen.pop(key) for key in keys}
        asked = {key: taken.get(key, (0, 0)) for key in (*taken, *about)}
        reports = [BreakerOutcomes(key.name, Outcomes(key.tenant, *counts)) for key, counts in asked.items()]
        try:
            request = ReportRequest(scope=Scope.all(), reports=(*reports, *passed))
            self._hear(await store.breakers.report(request))
        except StoreError as error:
            if error.retry_safe:
                for key, (succeeded, failed) in taken.items():
                    self.note(key.name, key.tenant, succeeded=succeeded, failed=failed)
            raise

    def hear(self, said: OpenBreakers, store_now: Instant | None = None) -> None:
        """Hear what a claim said of breakers; another process heard it before `store_now`."""
        at = self._elapsed() - (0 if store_now is None else max(0, store_now - said.now))
        cut = self._fresh_cut()
        if said.is_cut and (cut is None or cut.now <= said.now):
            self._cut = (at, said)
        for one in said.words:
            self._note_word(one.key, one.phase, one.open_until, said.now, at)

    def words_for(self, tenant: str) -> tuple[OpenBreakers, ...]:
        """Return what another process must hear before it starts a job of a tenant; usually nothing."""
        cut = self._fresh_cut()
        found = [] if cut is None else [cut]
        for key in (BreakerKey(name, one) for name in list(self.declared) for one in (EVERY_TENANT, tenant)):
            word = self._words.get(key)
            if word is not None and word.phase != "closed" and self.is_fresh(word):
                said = BreakerWord(key, word.phase, word.store_until)
                found.append(OpenBreakers(word.said_at, (said,)))
        return tuple(found)

    def _fresh_cut(self) -> OpenBreakers | None:
        """Return what a claim said that could not name all, while words from before it could still hold."""
        at, said = self._cut or (0, None)
        return said if self._elapsed() - at < WORD_HOLDS else None

    def _hear(self, reply: BreakersReply) -> None:
        at = self._elapsed()
        for one in reply.breakers:
            self._note_word(one.key, phase(one.state, reply.now), one.state.open_until, reply.now, at)

    def _note_word(
        self, key: BreakerKey, phase: Phase, open_until: Instant, said_at: Instant, at: Micros
    ) -> None:
        """Note a word, unless a newer one holds: answers may overtake each other."""
        word = Word(at, phase, at + open_until - said_at, said_at, open_until)
        with self._lock:
            held = self._words.get(key)
            if held is None or held.said_at <= said_at or not self.is_fresh(held):
                self._words[key] = word
            if len(self._words) > self._room:
                self._drop_closed()

    def _drop_closed(self) -> None:
        """Drop old words of closed breakers: none means the same. What is open still holds in an outage."""
        kept = {key: one for key, one in self._words.items() if one.phase != "closed" or self.is_fresh(one)}
        self._words, self._room = kept, max(MANY_WORDS, 2 * len(kept))


def of_permit(name: str, tenant: str, job: UUID, *, passed: bool | None) -> BreakerOutcomes:
    """Return the outcome of a job that passed; None: it says nothing, and its permit is free."""
    outcomes = Outcomes(tenant, int(passed is True), int(passed is False), job)
    return BreakerOutcomes(name, outcomes)
