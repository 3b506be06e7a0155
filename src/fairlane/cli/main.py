"""The `fairlane` command and the table of its commands. Imports only the command that is called."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Final, NoReturn

from fairlane.cli.command import Root

COMMANDS: Final = {
    "init": "fairlane.cli.commands.init:init",
    "demo": "fairlane.cli.commands.demo:demo",
    "up": "fairlane.cli.commands.up:up",
    "web": "fairlane.cli.commands.web:web",
    "bench": "fairlane.cli.commands.bench:bench",
    "worker": "fairlane.cli.commands.worker:worker",
    "scheduler": "fairlane.cli.commands.worker:scheduler",
    "relay": "fairlane.cli.commands.relay:relay",
    "version": "fairlane.cli.commands.version:version",
    "migrate": "fairlane.cli.commands.migrate:migrate",
    "enqueue": "fairlane.cli.commands.enqueue:enqueue",
    "jobs": "fairlane.cli.commands.jobs:jobs",
    "explain": "fairlane.cli.commands.explain:explain",
    "failures": "fairlane.cli.commands.failures:failures",
    "dead": "fairlane.cli.commands.dead.group:dead",
    "history": "fairlane.cli.commands.history:history",
    "audit": "fairlane.cli.commands.audit:audit",
    "events": "fairlane.cli.commands.events:events",
    "cancel": "fairlane.cli.commands.cancel:cancel",
    "run-now": "fairlane.cli.commands.cancel:run_now",
    "queues": "fairlane.cli.commands.policies.queues:queues",
    "tenants": "fairlane.cli.commands.policies.tenants:tenants",
    "tasks": "fairlane.cli.commands.policies.tasks:tasks",
    "gates": "fairlane.cli.commands.policies.gates:gates",
    "breakers": "fairlane.cli.commands.policies.breakers:breakers",
    "budgets": "fairlane.cli.commands.policies.budgets:budgets",
    "limits": "fairlane.cli.commands.policies.limits:limits",
    "pause": "fairlane.cli.commands.policies.pause:pause",
    "close": "fairlane.cli.commands.policies.pause:close",
    "resume": "fairlane.cli.commands.policies.pause:resume",
    "drain": "fairlane.cli.commands.policies.pause:drain",
    "workers": "fairlane.cli.commands.workers:workers",
    "schedules": "fairlane.cli.commands.schedules.group:schedules",
    "duties": "fairlane.cli.commands.duties:duties",
    "top": "fairlane.cli.commands.top:top",
    "users": "fairlane.cli.commands.access.users:users",
    "tokens": "fairlane.cli.commands.access.tokens:tokens",
    "sessions": "fairlane.cli.commands.access.sessions:sessions",
    "config": "fairlane.cli.commands.config:config",
    "doctor": "fairlane.cli.commands.doctor.group:doctor",
}
"""Each command and the object that implements it."""

cli: Final = Root(
    name="fairlane",
    commands=COMMANDS,
    help="Background jobs for multi-tenant Python applications: fair between tenants, durable, observable.",
    epilog="Exit codes and examples are in docs/reference/command-line.md.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """Run this process's command line."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its code; it must not end the command.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    cli.main()
