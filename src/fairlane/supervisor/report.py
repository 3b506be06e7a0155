"""Log what a supervisor does, with the process it is about: worker process 1 of 2, pid 4711."""

from __future__ import annotations

import logging
from typing import Final

from fairlane.supervisor.control import ProcessNumber
from fairlane.supervisor.endings import Consequence, Ending

log: Final = logging.getLogger("fairlane.supervisor")


def _named(number: ProcessNumber, pid: int) -> str:
    return f"{number}, pid {pid}"


def _log(level: int, event: str, text: str, number: ProcessNumber, pid: int, **facts: object) -> None:
    extra = {
        "event": event,
        "kind": number.kind,
        "process_number": number.position + 1,
        "processes": number.total,
        "pid": pid,
        **facts,
    }
    log.log(level, "%s, %s", _named(number, pid), text, extra=extra)


def started(number: ProcessNumber, pid: int) -> None:
    """Log that a process was started."""
    _log(logging.INFO, "process_started", "was started", number, pid)


def successor_started(number: ProcessNumber, pid: int, predecessor: int) -> None:
    """Log that a process was started that takes over from another."""
    text = f"was started and takes over from pid {predecessor} when it is ready"
    _log(logging.INFO, "successor_started", text, number, pid, predecessor=predecessor)


def serving(number: ProcessNumber, pid: int) -> None:
    """Log that a process does its work from now on: a worker claims jobs."""
    _log(logging.INFO, "process_serves", "serves", number, pid)


def left(number: ProcessNumber, pid: int, ending: Ending) -> None:
    """Log the end of a process that was told to leave."""
    is_normal = ending.code == 0
    level = logging.INFO if is_normal else logging.WARNING
    _log(level, "process_left", "has left" if is_normal else str(ending), number, pid, code=ending.code)


def ended(number: ProcessNumber, pid: int, ending: Ending, consequence: Consequence, pause: float) -> None:
    """Log the end of a process that was not told to end, and when the next one starts."""
    is_normal = consequence is Consequence.REPLACED
    after = "the next one starts at once" if pause == 0 else f"the next one starts in {pause:.1f} s"
    facts = {"code": ending.code, "out_of_memory": ending.is_out_of_memory, "pause_s": pause}
    level = logging.INFO if is_normal else logging.ERROR
    _log(level, "process_ended", f"{ending}; {after}", number, pid, **facts)


def burst_ended(number: ProcessNumber, pid: int) -> None:
    """Log that a process has ended its burst; its own last line says what it did."""
    _log(logging.DEBUG, "process_left", "has ended its burst", number, pid, code=0)


def final(number: ProcessNumber, pid: int, ending: Ending) -> None:
    """Log the end of a process that no restart would correct."""
    _log(logging.ERROR, "process_ended", f"{ending}; it is not started again", number, pid, code=ending.code)


def killed(number: ProcessNumber, pid: int) -> None:
    """Log that a process outlived its time and is killed."""
    _log(logging.ERROR, "process_killed", "outlived its shutdown deadline and is killed", number, pid)


def crash_loop(number: ProcessNumber, ending: Ending, crashes: int) -> None:
    """Log, once, that the processes of an instance crash again and again."""
    text = "%s: crash loop: %d processes in a row ended soon, the last one %s"
    extra = {
        "event": "crash_loop",
        "kind": number.kind,
        "process_number": number.position + 1,
        "code": ending.code,
        "crashes": crashes,
    }
    log.critical(text, number, crashes, ending, extra=extra)


def given_up() -> None:
    """Log that the command ends because no process of it was ever ready."""
    text = "no process has ever been ready: the supervisor gives up"
    log.critical(text, extra={"event": "supervisor_gave_up"})


def successor_failed(number: ProcessNumber, pid: int, ending: Ending | None) -> None:
    """Log that a successor did not get ready, and that its predecessor works on."""
    why = "was not ready in time and is killed" if ending is None else str(ending)
    text = f"{why} before it could take over; its predecessor works on, and the rolling restart ends"
    _log(logging.ERROR, "successor_failed", text, number, pid, code=None if ending is None else ending.code)


def rolling_restart(count: int) -> None:
    """Log that a rolling restart begins."""
    text = "rolling restart: %d processes, one after the other"
    log.info(text, count, extra={"event": "rolling_restart", "processes": count})


def rolling_restart_done() -> None:
    """Log that a rolling restart has replaced every process."""
    log.info("rolling restart: done", extra={"event": "rolling_restart_done"})


def stopping(processes: int, *, is_fast: bool) -> None:
    """Log that the supervisor was told to stop."""
    how = "now" if is_fast else "gracefully"
    extra = {"event": "supervisor_stopping", "processes": processes}
    log.info("the supervisor stops %s, %d processes run", how, processes, extra=extra)
