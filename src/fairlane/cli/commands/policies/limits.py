"""`fairlane limits`: show the limits of a queue, tenant, task or gate, or override them (S54)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import click
import msgspec
from msgspec import UNSET

from fairlane import Fairlane, Limits, Rate
from fairlane.app.admin.controls import policy_action
from fairlane.app.admin.operations import operation
from fairlane.cli import value_types
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import Cell
from fairlane.cli.render.policies import limits_text, rate_text
from fairlane.cli.render.times import timestamp_and_age
from fairlane.cli.shared_options import end_of, note, subject_arguments, subject_of, with_end
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, iso, to_datetime
from fairlane.model.policy.overrides import (
    EVERY,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TenantRules,
    limits_of,
)
from fairlane.model.policy.rate_text import NONE, read_rate
from fairlane.model.scope import Scope
from fairlane.store.contract.policies import PolicyView, ReadRequest, SubjectRequest

_ALL: Final = Scope.all()
_DIGITS: Final = 9
"""The maximum number of digits: more than anybody needs, and every store can hold it."""
_PER_TENANT: Final = ("waiting", "on_full", "running")
_SETTABLE: Final = (*_PER_TENANT, "rate", "tenant_rate", "max_waiting", "weight", "limit")


def _number(text: str) -> int | None:
    if text == NONE:
        return None
    if not text.isdecimal() or len(text) > _DIGITS:
        message = (
            f"{text[:40]!r} is not a whole number; give one of up to {_DIGITS} digits, or `none` for no limit"
        )
        raise ValueError(message)
    return int(text)


class OverrideDetails(NamedTuple):
    """The reason of an override, its end, and who made it."""

    note: str
    until: Instant | None
    who: str


_NUMBER: Final = value_types.ValueType("number|none", _number)
_RATE: Final = value_types.ValueType("rate", read_rate)


@click.command(cls=Command)
@subject_arguments(SubjectKind.QUEUE, SubjectKind.TENANT, SubjectKind.TASK, SubjectKind.GATE)
@click.option("--queue", type=value_types.QUEUE, help="Tenants only: this queue instead of every queue.")
@click.option("--waiting", type=_NUMBER, help="Maximum jobs of a tenant waiting in a queue.")
@click.option("--on-full", type=click.Choice(["warn", "reject"]), help="What to do above --waiting.")
@click.option("--running", type=_NUMBER, help="Maximum jobs of a tenant running at once.")
@click.option("--rate", type=_RATE, help="Maximum starts, as in 50/minute.")
@click.option(
    "--tenant-rate",
    type=_RATE,
    help="Queues only: maximum starts of each tenant.",
)
@click.option(
    "--max-waiting", type=_NUMBER, help="Queues only: maximum waiting jobs of all tenants together."
)
@click.option("--weight", type=float, help="Tenants only: its share of the slots; the default is 1.")
@click.option("--limit", type=_NUMBER, help="Gates only: maximum jobs running at once.")
@click.option("--reset", is_flag=True, help="Remove the override; the declared values apply again.")
@note
@with_end
@click.pass_obj
def limits(invocation: Invocation, /, *, kind: str, name: str, **options: Any) -> None:
    """Show or override limits of a queue, tenant, task or gate.

    An override takes precedence over the declared values. It applies from the next claim on, survives
    deploys, and ends with --reset, --for or --until. The limits of a tenant in a queue are set together:
    those that are not given keep their current value.
    """
    subject = subject_of(kind, name)
    given = {key: options[key] for key in _SETTABLE if _is_given(key)}
    if options["reset"] and given:
        message = "--reset removes the whole override; it cannot be combined with values"
        raise click.UsageError(message)

    async def work(app: Fairlane) -> tuple[PolicyView, Instant]:
        now = await now_of(app)
        try:
            if options["reset"]:
                await _reset(app, subject, options["queue"], options["note"], invocation.who)
            elif given:
                end = end_of(options["until"], options["duration"], now)
                await _set(
                    app,
                    subject,
                    options["queue"],
                    given,
                    OverrideDetails(options["note"], end, invocation.who),
                )
        except ValueError as error:  # an option that does not fit the subject, or another end than before
            message = str(error).replace(
                "give the same until=, or reset it", "give the same --until, or --reset it"
            )
            raise click.UsageError(message) from None
        return await _read(app, subject), now

    view, now = invocation.run(work)
    invocation.output.record(_fields(view, now), _as_json(view))


def _is_given(option: str) -> bool:
    """Whether an option was given on the command line; `none` is a value too."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


async def _read(app: Fairlane, subject: Subject) -> PolicyView:
    return (await app.client.store.policies.read(ReadRequest(scope=_ALL, subjects=(subject,))))[subject]


async def _set(
    app: Fairlane, subject: Subject, queue: str | None, given: Mapping[str, Any], details: OverrideDetails
) -> None:
    if subject.kind is SubjectKind.TENANT:
        _only(subject, given, *_PER_TENANT, "rate", "weight")
        before = await _in_force(app, subject, queue)
        await app.tenants.aset(
            subject.name,
            queue=queue,
            weight=given.get("weight"),
            limits=_limits(given, before),
            note=details.note,
            until=None if details.until is None else to_datetime(details.until),
            who=details.who,
        )
    elif subject.kind is SubjectKind.QUEUE:
        _only(subject, given, *_PER_TENANT, "rate", "tenant_rate", "max_waiting")
        each = {key: value for key, value in given.items() if key in _PER_TENANT}
        if "tenant_rate" in given:
            each["rate"] = given["tenant_rate"]
        await app.queues.aset(
            subject.name,
            limits=_limits(each, (await app.queues.aget(subject.name)).limits),
            rate=given.get("rate", UNSET),
            max_waiting=given.get("max_waiting", UNSET),
            note=details.note,
            until=None if details.until is None else to_datetime(details.until),
            who=details.who,
        )
    else:
        _only(subject, given, *(("rate", "limit") if subject.kind is SubjectKind.GATE else ("rate",)))
        space = app.gates if subject.kind is SubjectKind.GATE else app.tasks
        until = None if details.until is None else to_datetime(details.until)
        await space.aset(subject.name, **given, note=details.note, until=until, who=details.who)


async def _in_force(app: Fairlane, subject: Subject, queue: str | None) -> Limits:
    """Return a tenant's limits in a queue, or its limits for every queue."""
    everyone = Subject(SubjectKind.TENANT, EVERY)
    there = Subject(SubjectKind.QUEUE, queue or EVERY)
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
    """Return the current limits with the given changes; None if there are none."""
    changed = {key: value for key, value in given.items() if key in {*_PER_TENANT, "rate"}}
    return replace(before, **changed) if changed else None


async def _reset(app: Fairlane, subject: Subject, queue: str | None, note: str, who: str) -> None:
    if subject.kind is SubjectKind.TENANT:
        await app.tenants.areset(subject.name, queue=queue, note=note, who=who)
    else:
        done = operation(policy_action(subject.kind, "reset"), who=who, note=note)
        request = SubjectRequest(scope=_ALL, subject=subject, who=who, note=note, operation=done)
        await app.client.store.policies.reset(request)


def _fields(view: PolicyView, now: Instant) -> dict[str, Cell]:
    override = view.override
    set_by: dict[str, Cell] = {}
    if override is not None:
        ends = "" if override.until is None else f", until {timestamp_and_age(override.until, now)}"
        why = f": {override.note}" if override.note else ""
        since = ago(min(override.set_at, now), now)  # an override of this very command is later than `now`
        set_by["set"] = f"by {override.who} {since}{why}{ends}"
        set_by["declared"] = "nothing" if view.declared is None else _words(view.declared)
    return {view.subject.kind.value: view.subject.name, "in force": _words(view.effective), **set_by}


def _words(rules: Rules) -> str:
    """Format rules, one value per line."""
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
    return NONE if value is None else str(value)


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
