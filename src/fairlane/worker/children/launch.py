"""Start a child process: never forked from the worker, whose threads a copy would not have. Knows no job."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from typing import NamedTuple

from fairlane.app.fairlane import Fairlane
from fairlane.worker.children.guardian_link import GuardianLink
from fairlane.worker.children.protocol import Setup


class Launched(NamedTuple):
    """A process that was just started: the worker's end of its connection, and of the pipe of its output."""

    process: subprocess.Popen[bytes]
    connection: socket.socket
    output: int


def setup_for(app: Fairlane, import_path: str, worker: str, *, reports_memory: bool) -> Setup:
    """Return what a child must know: what to import, the command line's options, the log levels."""
    given = app.configuration.command_line
    loggers = {"": logging.getLogger(), **logging.Logger.manager.loggerDict}
    levels = {
        name: one.level for name, one in loggers.items() if isinstance(one, logging.Logger) and one.level
    }
    return Setup(
        worker=worker,
        application=import_path,
        path=tuple(sys.path),
        config_file=None if given.file is None else str(given.file),
        options={option: (key, str(value)) for option, (key, value) in given.options.items()},
        log_levels=levels,
        reports_memory=reports_memory,
    )


def launch_guarded(guardian: GuardianLink) -> Launched:
    """Start a child that the guardian watches; `OSError` if the system cannot start one of both."""
    launched = launch()
    try:
        guardian.watch(launched.process.pid)
    except OSError:
        launched.process.kill()
        launched.process.wait()
        guardian.forget(launched.process.pid)
        launched.connection.close()
        os.close(launched.output)
        raise
    return launched


def launch() -> Launched:
    """Start a child with an empty standard input, in a session and a process group of its own.

    `OSError` if the system cannot start one: no interpreter, no memory, no descriptors.
    """
    ours, theirs = socket.socketpair()
    reading, writing = -1, -1
    try:
        reading, writing = os.pipe()
        process = subprocess.Popen(  # noqa: S603 (our own program)
            [sys.executable, "-P", "-m", "fairlane.worker.children.child.main", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        ours.close()
        if reading >= 0:
            os.close(reading)
        raise OSError(str(error)) from error
    finally:
        theirs.close()
        if writing >= 0:
            os.close(writing)
    ours.setblocking(False)  # noqa: FBT003 (takes no names)
    return Launched(process, ours, reading)
