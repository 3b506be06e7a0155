"""Collect processes that were left to us, as the first process of a container gets them. Knows no worker."""

from __future__ import annotations

import os
from collections.abc import Collection


def reap_orphans(own: Collection[int]) -> None:
    """Collect the exit codes of ended children that are not our own; else they stay in the process table."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid in own:  # our own are collected by who started them, before this
            return
        os.waitpid(found.si_pid, 0)
