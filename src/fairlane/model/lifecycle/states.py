"""The states of a job and the events that move it. Everything that affects the state machine is here (S23).

Stores spell no transition: they ask `sources` for the states in which an event may happen and `target` for
the state it leads to, and render the answers into their statements when they load them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from fairlane.model.failure import bounded
from fairlane.model.instants import Instant

DETAIL_CHARS: Final = 500


class State(StrEnum):
    """Where a job stands. A failed attempt is part of its history, not a state."""

    DELAYED = "delayed"
    READY = "ready"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Event(StrEnum):
    """What can happen to a job."""

    ENQUEUE = "enqueue"
    DUE = "due"
    RUN_NOW = "run_now"
    CLAIM = "claim"
    CANCEL = "cancel"
    EXPIRE = "expire"
    CONDEMN = "condemn"
    SUCCEED = "succeed"
    RETRY = "retry"
    SNOOZE = "snooze"
    HAND_BACK = "hand_back"
    EXHAUST = "exhaust"
    FAIL = "fail"
    STUCK = "stuck"
    OBEY_CANCEL = "obey_cancel"
    ASK_CANCEL = "ask_cancel"
    LOSE = "lose"


class Because(StrEnum):
    """Why a job is delayed, dead or cancelled: the first word of a job's `because`."""

    TIME = "time"
    RETRY = "retry"
    SNOOZE = "snooze"
    UNKNOWN_TASK = "unknown_task"
    UNKNOWN_VERSION = "unknown_version"
    BREAKER = "breaker"
    EXHAUSTED = "exhausted"
    FAILED = "failed"
    STUCK = "stuck"
    LOST = "lost"
    CONDEMNED = "condemned"
    ASKED = "asked"
    CHOSEN = "chosen"
    SKIPPED = "skipped"
    EXPIRED = "expired"
    PURGED = "purged"


class CancelReply(StrEnum):
    """The answer to a cancel (S30)."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    FINISHED = "finished"


_TABLE: Final[dict[State | None, dict[Event, tuple[State, ...]]]] = {
    None: {Event.ENQUEUE: (State.READY, State.DELAYED)},
    State.DELAYED: {
        Event.DUE: (State.READY,),
        Event.RUN_NOW: (State.READY,),
        Event.CANCEL: (State.CANCELLED,),
        Event.EXPIRE: (State.CANCELLED,),
        Event.CONDEMN: (State.DEAD,),
    },
    State.READY: {
        Event.CLAIM: (State.RUNNING,),
        Event.CANCEL: (State.CANCELLED,),
        Event.EXPIRE: (State.CANCELLED,),
        Event.CONDEMN: (State.DEAD,),
    },
    State.RUNNING: {
        Event.SUCCEED: (State.SUCCEEDED,),
        Event.RETRY: (State.DELAYED,),
        Event.SNOOZE: (State.DELAYED,),
        Event.HAND_BACK: (State.READY,),
        Event.EXHAUST: (State.DEAD,),
        Event.FAIL: (State.DEAD,),
        Event.STUCK: (State.DEAD,),
        Event.OBEY_CANCEL: (State.CANCELLED,),
        Event.ASK_CANCEL: (State.RUNNING,),
        Event.LOSE: (State.READY, State.CANCELLED, State.DEAD),
    },
    State.SUCCEEDED: {},
    State.DEAD: {},
    State.CANCELLED: {},
}

TRANSITIONS: Final[dict[tuple[State | None, Event], tuple[State, ...]]] = {
    (state, event): targets for state, row in _TABLE.items() for event, targets in row.items()
}
"""Every legal (state, event) and where it leads; None is before the enqueue. Any other pair is refused and
changes nothing. Where several targets are listed, the rules S2, S25, S30 and S40 choose."""

_TARGETS: Final = {event: targets for (_, event), targets in TRANSITIONS.items()}

WAITING: Final = frozenset({State.DELAYED, State.READY})
"""What a waiting limit counts (S16)."""

HOT: Final = frozenset({State.DELAYED, State.READY, State.RUNNING})
FINISHED: Final = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED})

ENDINGS: Final = frozenset(
    {
        Event.SUCCEED,
        Event.RETRY,
        Event.SNOOZE,
        Event.HAND_BACK,
        Event.EXHAUST,
        Event.FAIL,
        Event.STUCK,
        Event.OBEY_CANCEL,
    }
)
"""The events of settlements: how an attempt can end while its claim is live."""


class Home(StrEnum):
    """Where a job is stored; an id is in exactly one home (S50)."""

    HOT = "hot"
    HISTORY = "history"
    DEAD = "dead"


def home(state: State) -> Home:
    """Return the home of a state.

    >>> home(State.RUNNING).value, home(State.CANCELLED).value, home(State.DEAD).value
    ('hot', 'history', 'dead')
    """
    if state in HOT:
        return Home.HOT
    return Home.DEAD if state is State.DEAD else Home.HISTORY


def is_finished(state: State) -> bool:
    """Whether a state is final."""
    return state in FINISHED


def sources(event: Event) -> tuple[State, ...]:
    """Return the states in which an event may happen, in the order of `State`.

    >>> [state.value for state in sources(Event.CANCEL)]
    ['delayed', 'ready']
    """
    return tuple(state for state in State if (state, event) in TRANSITIONS)


def target(event: Event) -> State:
    """Return the state that an event leads to. Not for events with several targets.

    >>> target(Event.RETRY).value
    'delayed'
    """
    (state,) = _TARGETS[event]
    return state


def is_expired(expires_at: Instant | None, at: Instant) -> bool:
    """Whether no attempt may start any more at this instant (S21).

    >>> is_expired(None, 5), is_expired(6, 5), is_expired(5, 5)
    (False, False, True)
    """
    return expires_at is not None and at >= expires_at


def because(reason: Because, detail: str = "") -> str:
    """Join a reason of the closed list and a free, bounded detail into a job's `because`.

    >>> because(Because.ASKED, "ordered twice"), because(Because.TIME)
    ('asked: ordered twice', 'time')
    """
    return f"{reason.value}: {bounded(detail, DETAIL_CHARS)}" if detail else reason.value
