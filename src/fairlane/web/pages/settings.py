"""Settings: what this browser has chosen, the store, its queues and lanes, and who may use the dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fairlane.app.admin.workers import Worker
from fairlane.app.config.display import rows
from fairlane.app.config.value_kinds import safe_url
from fairlane.diagnosis.health import Health, HealthWatch
from fairlane.model.access import Role
from fairlane.runtime.clock import MachineClock
from fairlane.web.api.tokens import TokenCreateBody
from fairlane.web.api.tokens import create as create_token
from fairlane.web.call import WebCall
from fairlane.web.page import PageGroup, PageView
from fairlane.web.personal import CHOICES, zones

SETTINGS: Final = PageGroup("Settings", section="watch", icon="settings")


class TokenForm(TokenCreateBody, frozen=True, kw_only=True):
    """What the form of a new token sends: the token, and the page that a program without scripts names."""

    next: str = ""


@SETTINGS.page("/settings", "settings")
async def show_settings(call: WebCall) -> PageView:
    """Show the personal choices and, to those who see all tenants, the store, its queues and its lanes."""
    values: dict[str, Any] = {"choices": CHOICES, "zones": zones(), "store": None}
    if call.principal.tenant is None:
        values |= {
            "store": _store(call),
            "health": await _health(call),
            "queues": await call.app.queues.alist(),
            "lanes": _lanes(await call.app.workers.alist()),
        }
    return PageView("settings/settings.html", values)


@SETTINGS.page("/settings/access", "settings.access", least=Role.ADMIN, tenants="all")
async def show_access(call: WebCall) -> PageView:
    """Show users, tokens and sessions, with what can be changed."""
    values = {
        "users": await call.app.users.alist(),
        "tokens": await call.app.tokens.alist(),
        "sessions": await call.app.sessions.alist(),
        "roles": [role.value for role in Role if call.principal.role.includes(role)],
    }
    return PageView("settings/access.html", values)


@SETTINGS.page("/settings/tokens", "tokens.create", least=Role.ADMIN, tenants="all", method="POST")
async def show_new_token(call: WebCall, query: TokenForm) -> PageView:
    """Make a token, and show its secret this once."""
    made = await create_token(call, query)
    return PageView("settings/token.html", {"token": made.token, "secret": made.secret})


@SETTINGS.page("/settings/configuration", "settings.configuration", least=Role.ADMIN, tenants="all")
async def show_configuration(call: WebCall) -> PageView:
    """Show every key that is in force in this process, and where its value comes from; no secret."""
    tables: dict[str, list[Any]] = {}
    for row in rows(call.site.app.configuration):
        tables.setdefault(row.key.partition(".")[0], []).append(row)
    return PageView("settings/configuration.html", {"tables": tables})


def _store(call: WebCall) -> Mapping[str, str]:
    """Return how the store is reached, without any password."""
    settings = call.site.app.settings
    replica = settings.web.replica_url
    return {
        "Kind": str(settings.url).partition(":")[0].partition("+")[0],
        "URL": safe_url(str(settings.url)),
        "Replica for pages": "" if replica is None else safe_url(replica),
    }


async def _health(call: WebCall) -> Health:
    return await HealthWatch(lambda: call.site.app.client.store, MachineClock()).health()


def _lanes(workers: Sequence[Worker]) -> Sequence[Mapping[str, Any]]:
    """Return the lanes of live workers by name: slots of all, and the queues that each serves."""
    found: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = {}
    for worker in workers:
        for lane in worker.lanes if worker.is_live else ():
            key = (lane.name, tuple(lane.queues))
            one = found.setdefault(key, {"name": lane.name, "queues": lane.queues, "slots": 0, "workers": 0})
            one["slots"] += lane.slots
            one["workers"] += 1
    return [found[key] for key in sorted(found)]
