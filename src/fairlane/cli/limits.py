"""`fairlane limits`: what a queue, tenant, task or gate may, and how to change it for a while (S54)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import click
import msgspec
from msgspec import UNSET

from fairlane import Fairlane, Limits, Rate
from fairlane.cli import kinds
from fairlane.cli.command import Command
from fairlane.cli.moments import ago, iso, moment
from fairlane.cli.output import Cell
from fairlane.cli.queues import limits_text, rate_text
from fairlane.cli.session import Session, now_of
from fairlane.cli.terms import about, end_of, ending, note, subject_of
from fairlane.model.instants import Instant, to_datetime
from fairlane.model.layers import EVERY, Kind, QueueRules, Rules, Subject, TenantRules, limits_of
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import PolicyView, ReadRequest, SubjectRequest

_ALL: Final = Scope.all()
_NONE: Final = "none"
_DIGITS: Final = 9
"""Of a number that anybody means, and that every store can keep."""
_PER_TENANT: Final = ("waiting", "on_full", "running")
_SETTABLE: Final = (*_PER_TENANT, "rate", "tenant_rate", "max_waiting", "weight", "limit")


def _number(text: str) -> int | None:
    if text == _NONE:
        return None
    if not text.isdecimal() or len(text) > _DIGITS:
        message = (
            f"{text[:40]!r} is no whole number; give one of up to {_DIGITS} digits, or `none` for no limit"
        )
        raise ValueError(message)
    return int(text)


def _rate(text: str) -> Rate | None:
    """Read a rate.

    >>> _rate("50/minute"), _rate("10/second+20"), _rate("none")
    (Rate(limit=50, per='minute', burst=1), Rate(limit=10, per='second', burst=20), None)
    """
    if text == _NONE:
        return None
    limit, _, rest = text.partition("/")
    per, _, burst = rest.partition("+")
    numbers = (limit, burst or "1")
    if not all(number.isdecimal() and len(number) <= _DIGITS for number in numbers):
        message = (
            f"{text[:40]!r} is no rate; write it as 50/minute, or 10/second+20 with a burst of 20, or none"
        )
        raise ValueError(message)
    return Rate(int(limit), per, int(burst or 1))  # type: ignore[arg-type]  # it refuses what it does not know


class Terms(NamedTuple):
    """Why something is set, until when, and by whom."""

    note: str
    until: Instant | None
    who: str


_NUMBER: Final = kinds.Kind("number|none", _number)


@click.command(cls=Command)
@about(Kind.QUEUE, Kind.TENANT, Kind.TASK, Kind.GATE)
@click.option("--queue", type=kinds.QUEUE, help="Of a tenant: in this queue instead of in every one.")
@click.option("--waiting", type=_NUMBER, help="How many jobs of a tenant may wait in the queue.")
@click.option("--on-full", type=click.Choice(["warn", "reject"]), help="What happens above that.")
@click.option("--running", type=_NUMBER, help="How many jobs of a tenant may run at once.")
@click.option("--rate", type=kinds.Kind("rate", _rate), help="How often one may start: 50/minute.")
@click.option("--tenant-rate", type=kinds.Kind("rate", _rate), help="Of a queue: for each tenant.")
@click.option("--max-waiting", type=_NUMBER, help="Of a queue: over all tenants.")
@click.option("--weight", type=float, help="Of a tenant: its share, 1 is usual.")
@click.option("--limit", type=_NUMBER, help="Of a gate: how many may run at once.")
@click.option("--reset", is_flag=True, help="Take off what was set; the declared values hold again.")
@note
@ending
@click.pass_obj
def limits(session: Session, /, *, kind: str, name: str, **said: Any) -> None:
    """Show or set limits of a queue, tenant, task or gate.

    What is set lies above what is declared. It holds from the next claim on, survives deploys, and ends with
    --reset, --for or --until. The limits of a tenant in a queue are set as one: those that are not given stay
    as they are in force.
    """
    subject = subject_of(kind, name)
    given = {key: said[key] for key in _SETTABLE if _is_given(key)}
    if said["reset"] and given:
        message = "--reset takes off everything that was set; it goes with no value"
        raise click.UsageError(message)

    async def work(app: Fairlane) -> tuple[PolicyView, Instant]:
        now = await now_of(app)
        try:
            if said["reset"]:
                await _reset(app, subject, said["queue"], said["note"], session.who)
            elif given:
                end = end_of(said["until"], said["lasting"], now)
                await _set(app, subject, said["queue"], given, Terms(said["note"], end, session.who))
        except ValueError as error:  # what does not fit the subject, or another end than before
            said_here = str(error).replace(
                "give the same until=, or reset it", "give the same --until, or --reset it"
            )
            raise click.UsageError(said_here) from None
        return await _read(app, subject), now

    view, now = session.run(work)
    session.output.record(_fields(view, now), _as_json(view))


def _is_given(option: str) -> bool:
    """Whether an option stands on the command line; `none` is a value like any other."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


async def _read(app: Fairlane, subject: Subject) -> PolicyView:
    return (await app.client.store.policies.read(ReadRequest(scope=_ALL, subjects=(subject,))))[subject]


async def _set(
    app: Fairlane, subject: Subject, queue: str | None, given: Mapping[str, Any], terms: Terms
) -> None:
    if subject.kind is Kind.TENANT:
        _only(subject, given, *_PER_TENANT, "rate", "weight")
        before = await _in_force(app, subject, queue)
        await app.tenants.aset(
            subject.name,
            queue=queue,
            weight=given.get("weight"),
            limits=_limits(given, before),
            note=terms.note,
            until=None if terms.until is None else to_datetime(terms.until),
            who=terms.who,
        )
    elif subject.kind is Kind.QUEUE:
        _only(subject, given, *_PER_TENANT, "rate", "tenant_rate", "max_waiting")
        each = {key: value for key, value in given.items() if key in _PER_TENANT}
        if "tenant_rate" in given:
            each["rate"] = given["tenant_rate"]
        await app.queues.aset(
            subject.name,
            limits=_limits(each, (await app.queues.aget(subject.name)).limits),
            rate=given.get("rate", UNSET),
            max_waiting=given.get("max_waiting", UNSET),
            note=terms.note,
            until=None if terms.until is None else to_datetime(terms.until),
            who=terms.who,
        )
    else:
        _only(subject, given, *(("rate", "limit") if subject.kind is Kind.GATE else ("rate",)))
        space = app.gates if subject.kind is Kind.GATE else app.tasks
        until = None if terms.until is None else to_datetime(terms.until)
        await space.aset(subject.name, **given, note=terms.note, until=until, who=terms.who)


async def _in_force(app: Fairlane, subject: Subject, queue: str | None) -> Limits:
    """Give the limits of a tenant in a queue, or those that it has for every queue."""
    everyone = Subject(Kind.TENANT, EVERY)
    there = Subject(Kind.QUEUE, queue or EVERY)
    views = await app.client.store.policies.read(ReadRequest(scope=_ALL, subjects=(subject, everyone, there)))
    own, others, rules = (views[one].effective for one in (subject, everyone, there))
    if queue is not None and isinstance(rules, QueueRules):
        return limits_of(queue, _tenant(own), _tenant(others), rules)
    return _tenant(own).limits.get(EVERY, Limits())


def _tenant(rules: Rules) -> TenantRules:
    return rules if isinstance(rules, TenantRules) else TenantRules()


def _only(subject: Subject, given: Mapping[str, Any], *allowed: str) -> None:
    wrong = [f"--{key.replace('_', '-')}" for key in given if key not in allowed]
    if wrong:
        message = f"a {subject.kind.value} has no {', '.join(wrong)}"
        raise ValueError(message)


def _limits(given: Mapping[str, Any], before: Limits) -> Limits | None:
    """Lay what is given over the limits in force; None if nothing of them is given."""
    changed = {key: value for key, value in given.items() if key in {*_PER_TENANT, "rate"}}
    return replace(before, **changed) if changed else None


async def _reset(app: Fairlane, subject: Subject, queue: str | None, note: str, who: str) -> None:
    if subject.kind is Kind.TENANT:
        await app.tenants.areset(subject.name, queue=queue, note=note, who=who)
    else:
        request = SubjectRequest(scope=_ALL, subject=subject, who=who, note=note)
        await app.client.store.policies.reset(request)


def _fields(view: PolicyView, now: Instant) -> dict[str, Cell]:
    override = view.override
    set_by: dict[str, Cell] = {}
    if override is not None:
        ends = "" if override.until is None else f", until {moment(override.until, now)}"
        why = f": {override.note}" if override.note else ""
        since = ago(min(override.set_at, now), now)  # what this very command set came after its `now`
        set_by["set"] = f"by {override.who} {since}{why}{ends}"
        set_by["declared"] = "nothing" if view.declared is None else _words(view.declared)
    return {view.subject.kind.value: view.subject.name, "in force": _words(view.effective), **set_by}


def _words(rules: Rules) -> str:
    """Write rules a value a line."""
    if isinstance(rules, TenantRules):
        each = [f"{queue}: {limits_text(one)}" for queue, one in sorted(rules.limits.items())]
        return "\n".join([f"weight {rules.weight:g}", *each])
    return "\n".join(
        f"{_title(name)}: {_value(value)}"
        for name, value in msgspec.structs.asdict(rules).items()
        if value is not None or name in {"rate", "max_waiting", "limit"}
    )


def _title(name: str) -> str:
    return {"limits": "each tenant", "max_waiting": "max waiting"}.get(name, name)


def _value(value: object) -> str:
    if isinstance(value, Limits):
        return limits_text(value)
    if isinstance(value, Rate):
        return str(rate_text(value))
    return _NONE if value is None else str(value)


def _as_json(view: PolicyView) -> dict[str, Any]:
    override = view.override
    return {
        "kind": view.subject.kind.value,
        "name": view.subject.name,
        "effective": msgspec.to_builtins(view.effective),
        "declared": msgspec.to_builtins(view.declared),
        "override": None
        if override is None
        else {
            "values": msgspec.to_builtins(override.change.fields()),
            "who": override.who,
            "note": override.note,
            "since": iso(override.set_at),
            "until": iso(override.until),
        },
    }
