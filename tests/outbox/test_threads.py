"""A relay in an application: starts and stops cleanly, once, and stays out of forked children."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from tests.app.test_portal import in_a_child
from tests.outbox.shop import Shop, eventually


def threads() -> set[threading.Thread]:
    """Return the threads of this process."""
    return set(threading.enumerate())


def relay_threads() -> int:
    """Count the relays that run in this process."""
    return sum(one.name == "fairlane-relay" for one in threads())


def test_stopping_leaves_no_thread_and_moves_nothing_more(shop: Shop) -> None:
    """Neither its own nor those of the store that it opened; stopping twice, or unstarted, is fine."""
    before = threads()
    relay = shop.relay()
    relay.stop()
    shop.fill(5)
    relay.start()
    relay.start()
    assert relay_threads() == 1
    eventually(lambda: shop.rows() == [])
    relay.stop()
    relay.stop()
    assert threads() == before
    shop.fill(1)
    assert len(shop.rows()) == 1


def test_a_stopped_relay_can_be_started_again(shop: Shop) -> None:
    """With what came meanwhile."""
    relay = shop.relay()
    with relay:
        shop.fill(1)
        eventually(lambda: shop.rows() == [])
    shop.fill(2)
    with relay:
        eventually(lambda: shop.rows() == [])
    assert len(shop.stored()) == 3


def test_a_blocking_run_ends_when_it_is_told_to(shop: Shop) -> None:
    """As the command does; what it is told before it begins counts."""
    stop = threading.Event()
    stop.set()
    shop.fill(1)
    shop.relay(poll=3_600).run(stop)
    assert len(shop.rows()) == 1
    stop.clear()
    thread = threading.Thread(target=shop.relay(poll=3_600).run, args=(stop,))
    thread.start()
    eventually(lambda: shop.rows() == [])
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


def test_a_forked_child_has_no_relay_until_it_starts_one(shop: Shop) -> None:
    """It waits for none, and the parent's goes on."""
    with shop.relay() as relay:
        shop.fill(1)
        eventually(lambda: shop.rows() == [])

        def begins() -> bool:
            relay.start()
            return relay_threads() == 1

        def begins_anew() -> bool:
            relay.stop()
            was_gone = relay_threads() == 0
            return was_gone and begins()

        assert in_a_child(begins_anew) == 0
        assert in_a_child(begins) == 0
        shop.fill(1)
        eventually(lambda: shop.rows() == [])


NEVER_STOPPED = """
import sqlite3, sys
from fairlane import Fairlane, Outbox, Relay
folder = sys.argv[1]
app = Fairlane(f"sqlite:///{folder}/fairlane.db")
db = sqlite3.connect(f"{folder}/shop.db")
db.execute(Outbox.ddl())
db.commit()
Relay(app, lambda: sqlite3.connect(f"{folder}/shop.db")).start()
print("ends")
"""


def test_a_relay_that_is_never_stopped_does_not_keep_the_interpreter(folder: Path) -> None:
    """Its thread is a daemon, and nothing is lost by that."""
    command = [sys.executable, "-c", NEVER_STOPPED, str(folder)]
    run = subprocess.run(command, capture_output=True, timeout=120, check=True)  # noqa: S603 (our own text)
    assert (run.stdout.strip(), run.stderr) == (b"ends", b"")
