"""Jobs: find them, and see which wait, run, ended or died."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlencode

import msgspec

from fairlane.app.admin.job_search import search_of
from fairlane.app.admin.state_counts import StateCounts, state_counts
from fairlane.app.ambient import scope_for
from fairlane.app.job import Job
from fairlane.app.redaction import Redactor
from fairlane.model.access import Role
from fairlane.model.lifecycle.states import FINISHED, WAITING, State
from fairlane.model.query.fields import FIELDS, STATES
from fairlane.model.query.printing import exactly
from fairlane.model.query.syntax import QueryError
from fairlane.store.contract.jobs import CountRequest
from fairlane.store.contract.registry import TasksRequest
from fairlane.web.api.job_replies import JobSummary, redactors, summaries
from fairlane.web.call import WebCall
from fairlane.web.declare import Body
from fairlane.web.page import PageGroup, PageView
from fairlane.web.pages.job import inspect_job, reveal_job, show_job

JOBS: Final = PageGroup("Jobs", section="work", icon="jobs", key="j")

Tab: TypeAlias = Literal["all", "waiting", "running", "succeeded", "dead", "cancelled"]

TABS: Final[Mapping[Tab, frozenset[State]]] = {
    "all": frozenset(State),
    "waiting": frozenset(WAITING),
    "running": frozenset({State.RUNNING}),
    "succeeded": frozenset({State.SUCCEEDED}),
    "dead": frozenset({State.DEAD}),
    "cancelled": frozenset({State.CANCELLED}),
}

_PAGE: Final = 50
_SHOWN: Final = 3
_LONGEST: Final = 40
_MOST_TERMS: Final = 8
_MOST_NAMES: Final = 100


class JobsQuery(Body, frozen=True, kw_only=True):
    """What the URL of the list says: the query, the tab, and where the page begins."""

    q: str = ""
    tab: Tab = "all"
    cursor: str | None = None


class JobRow(msgspec.Struct, frozen=True):
    """A job in the list, with its first arguments."""

    job: JobSummary
    arguments: Sequence[tuple[str, str]]


@JOBS.page("/jobs", "jobs.list")
async def list_jobs(call: WebCall, query: JobsQuery) -> PageView:
    """Show the jobs that match a query, newest first, with how many there are in each state."""
    store = call.app.client.store
    shown: dict[str, Any] = {
        "query": query,
        "fields": {name: field.meaning for name, field in FIELDS.items()},
        "states": list(STATES),
        "names": await _terms(call),
        "tabs": list(TABS),
        "page_size": _PAGE,
    }
    try:
        search = await search_of(store, query.q, {})
    except QueryError as error:
        return PageView("jobs/list.html", shown | {"error": error, "rows": (), "counts": None}, 422)
    states = None if query.tab == "all" else TABS[query.tab]
    page = await call.app.jobs.afind(query.q, state=states, limit=_PAGE, cursor=query.cursor)
    counts = await state_counts(store, search)
    return PageView(
        "jobs/list.html",
        shown
        | {
            "error": None,
            "rows": await rows_of(call, page.items),
            "counts": {tab: counts.of(*states) for tab, states in TABS.items()},
            "is_complete": counts.is_complete,
            "cancellable": _cancellable(counts, TABS[query.tab]),
            "next": _url(query, page.cursor) if page.cursor else "",
            "first": _url(query, None) if query.cursor else "",
            "without": _without_a_term(query.q),
            "all_query": whole_query(query),
        },
    )


JOBS.page("/jobs/{id}", "jobs.show")(show_job)
JOBS.page("/jobs/{id}/inspect", "jobs.inspect", least=Role.ADMIN, tenants="all", method="POST")(inspect_job)
JOBS.page("/jobs/{id}/reveal", "jobs.reveal", least=Role.MANAGER, method="POST")(reveal_job)


async def rows_of(call: WebCall, jobs: Sequence[Job[Any]]) -> Sequence[JobRow]:
    """Return rows of jobs, with what looks secret redacted."""
    by_task = await redactors(call.app, {job.task for job in jobs})
    return [
        JobRow(summary, first_arguments(job, by_task[job.task]))
        for job, summary in zip(jobs, await summaries(call.app, jobs), strict=True)
    ]


def first_arguments(job: Job[Any], redactor: Redactor) -> Sequence[tuple[str, str]]:
    """Return the first arguments of a job as short texts; none if they cannot be read."""
    try:
        arguments = redactor.value(dict(job.arguments))
    except ValueError:  # damaged, or of a form that this version does not know
        return ()
    return [(name, _short(value)) for name, value in list(arguments.items())[:_SHOWN]]


async def _terms(call: WebCall) -> Sequence[str]:
    """Return terms with the names of queues, tenants and tasks that the caller may know, some of each."""
    store, scope = call.app.client.store, scope_for(None)
    counts = (await store.jobs.count(CountRequest(scope=scope))).counts
    names = {
        "queue": {one.queue for one in counts},
        "tenant": {one.tenant for one in counts},
    }
    if scope.tenant is None:
        published = await store.registry.tasks(TasksRequest(scope=scope))
        names["task"] = {one.record.name for one in published}
    return [exactly(field, name) for field, found in names.items() for name in sorted(found)[:_MOST_NAMES]]


def whole_query(query: JobsQuery) -> str:
    """Return one query that finds what the list finds, with its tab.

    >>> whole_query(JobsQuery(q="a or b", tab="running")), whole_query(JobsQuery(tab="waiting"))
    ('(a or b) state:running', 'state:waiting')
    """
    term = "" if query.tab == "all" else f"state:{query.tab}"
    if not query.q.strip():
        return term
    return f"({query.q}) {term}" if term else query.q


def _short(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _cancellable(counts: StateCounts, states: frozenset[State]) -> int:
    return counts.of(*(states - FINISHED)) if states - FINISHED else 0


def _url(query: JobsQuery, cursor: str | None) -> str:
    given = {"q": query.q, "tab": "" if query.tab == "all" else query.tab, "cursor": cursor or ""}
    return "/jobs?" + urlencode({name: value for name, value in given.items() if value})


def _without_a_term(query: str) -> Sequence[tuple[str, str]]:
    """Return each term of a plain query, and the query without it: what to drop if nothing matches.

    >>> _without_a_term("tenant:acme state:dead")
    [('tenant:acme', 'state:dead'), ('state:dead', 'tenant:acme')]
    >>> _without_a_term("tenant:acme or tenant:globex"), _without_a_term("tenant:acme")
    ([], [])
    """
    terms = query.split()
    if not 1 < len(terms) <= _MOST_TERMS or "or" in terms or any(mark in query for mark in "()\"'"):
        return []
    return [(term, " ".join(terms[:index] + terms[index + 1 :])) for index, term in enumerate(terms)]
