"""The `fairlane` command: its commands and where they are. Loads only what is called."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Final, NoReturn

from fairlane.cli.command import Root

PLACES: Final = {
    "init": "fairlane.cli.init:init",
    "demo": "fairlane.cli.run:demo",
    "up": "fairlane.cli.run:up",
    "bench": "fairlane.cli.bench:bench",
    "worker": "fairlane.cli.run:worker",
    "scheduler": "fairlane.cli.run:scheduler",
    "relay": "fairlane.cli.relay:relay",
    "version": "fairlane.cli.version:version",
    "migrate": "fairlane.cli.store:migrate",
    "enqueue": "fairlane.cli.enqueue:enqueue",
    "jobs": "fairlane.cli.jobs:jobs",
    "explain": "fairlane.cli.explain:explain",
    "cancel": "fairlane.cli.steer:cancel",
    "run-now": "fairlane.cli.steer:run_now",
    "queues": "fairlane.cli.queues:queues",
    "tenants": "fairlane.cli.tenants:tenants",
    "tasks": "fairlane.cli.tasks:tasks",
    "gates": "fairlane.cli.gates:gates",
    "limits": "fairlane.cli.limits:limits",
    "pause": "fairlane.cli.holds:pause",
    "close": "fairlane.cli.holds:close",
    "resume": "fairlane.cli.holds:resume",
    "drain": "fairlane.cli.holds:drain",
    "workers": "fairlane.cli.workers:workers",
    "config": "fairlane.cli.configuration:config",
    "doctor": "fairlane.cli.doctor:doctor",
}
"""Each command and the object that it is."""

cli: Final = Root(
    name="fairlane",
    places=PLACES,
    help="Background jobs for multi-tenant Python applications: fair between tenants, durable, observable.",
    epilog="Exit codes and examples are in docs/reference/command-line.md.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """Run the command line of this process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter shows its code; it never ends the command.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    cli.main()
