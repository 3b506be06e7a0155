"""An application with its own database, written with one library or another, and a separate store."""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import apsw
import sqlalchemy
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from fairlane import Call, Fairlane, Outbox, Relay, Task
from fairlane.model.policy.overrides import Rules, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.outbox.backlog import Connection
from fairlane.store.contract.policies import HoldRequest, PutRequest, SubjectRequest
from tests.app.world import note

ALL = Scope.all()


def eventually(is_so: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until a fact holds, at most so long."""
    patience = threading.Event()
    for _ in range(round(seconds * 100)):
        if is_so():
            return
        patience.wait(0.01)
    message = f"not so within {seconds} s"
    raise AssertionError(message)


class Shop(ABC):
    """The application: orders and jobs in one transaction, a relay, and a look at what came of them."""

    def __init__(self, folder: Path, url: str = "", **settings: Any) -> None:
        """Make the application's tables; the store's file is made by its first use."""
        self.file = folder / "shop.db"
        self.jobs_file = folder / "fairlane.db"
        self.app = Fairlane(url or f"sqlite:///{self.jobs_file}", **settings)
        self.task: Task[..., None] = self.app.task(name="note")(note).using(tenant="acme")
        self.outbox = Outbox(self.app)
        with sqlite3.connect(self.file) as db:
            db.execute("PRAGMA journal_mode = wal")
            db.execute(Outbox.ddl())
            db.execute("CREATE TABLE IF NOT EXISTS orders (name TEXT)")
        db.close()

    # ── the application's own transaction ─────────────────────────────────────

    @abstractmethod
    def execute(self, sql: str, values: Any = ()) -> object:
        """Execute in the open transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Commit it."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll it back."""

    @abstractmethod
    def connect(self) -> Connection:
        """Open a DB-API connection for the relay."""

    @abstractmethod
    def close(self) -> None:
        """Close what the library has open, and the application."""

    def add(self, *calls: Call[Any]) -> list[UUID]:
        """Add jobs to the outbox in the open transaction."""
        return self.outbox.add_many(self.execute, calls)

    def fill(self, number: int, *tenants: str) -> list[UUID]:
        """Commit so many jobs of these tenants in turn."""
        names = tenants or ("acme",)
        calls = [self.task.using(tenant=names[n % len(names)]).bind(n) for n in range(number)]
        ids = [id for start in range(0, number, 1_000) for id in self.add(*calls[start : start + 1_000])]
        self.commit()
        return ids

    # ── the relay ─────────────────────────────────────────────────────────────

    def relay(self, **options: Any) -> Relay:
        """Make a relay that looks often."""
        return Relay(self.app, self.connect, **{"poll": 0.01, **options})

    # ── what came of it ───────────────────────────────────────────────────────

    def rows(self, columns: str = "id") -> list[Any]:
        """Read the outbox from outside, in order."""
        db = sqlite3.connect(self.file)
        found = db.execute(f"SELECT {columns} FROM fairlane_outbox ORDER BY seq").fetchall()  # noqa: S608 (our own text)
        db.close()
        return [row[0] if "," not in columns else row for row in found]

    def change(self, sql: str, *values: Any) -> None:
        """Change the outbox from outside."""
        with sqlite3.connect(self.file) as db:
            db.execute(sql, values)
        db.close()

    def stored(self) -> list[UUID]:
        """Return the ids of the store's jobs in the order in which they were stored."""
        db = self._look()
        found = [UUID(bytes=id) for (id,) in db.execute("SELECT id FROM body ORDER BY seq")]
        db.close()
        return found

    def stored_by_tenant(self) -> dict[str, list[UUID]]:
        """The same, for each tenant."""
        db = self._look()
        found: dict[str, list[UUID]] = defaultdict(list)
        for tenant, id in db.execute("SELECT tenant, id FROM body ORDER BY seq"):
            found[tenant].append(UUID(bytes=id))
        db.close()
        return found

    def _look(self) -> apsw.Connection:
        db = apsw.Connection(str(self.jobs_file))
        db.set_busy_timeout(5_000)  # whoever reads first after a crash has to recover the file
        return db

    # ── policies ──────────────────────────────────────────────────────────────

    def put(self, kind: SubjectKind, name: str, rules: Rules) -> None:
        """Declare rules in the store."""
        request = PutRequest(scope=ALL, rules={Subject(kind, name): rules})
        self._ask(lambda: self.app.client.store.policies.put(request))

    def shut(self, kind: SubjectKind, name: str) -> None:
        """Close something for new jobs."""
        request = HoldRequest(scope=ALL, subject=Subject(kind, name), reason="stocktaking", who="ops")
        self._ask(lambda: self.app.client.store.policies.close(request))

    def reopen(self, kind: SubjectKind, name: str) -> None:
        """Open it again."""
        request = SubjectRequest(scope=ALL, subject=Subject(kind, name))
        self._ask(lambda: self.app.client.store.policies.reopen(request))

    def _ask(self, verb: Callable[[], Any]) -> None:
        async def ask() -> None:
            await verb()

        self.app.client.portal.run(ask())


class PlainShop(Shop):
    """Written with the standard library's sqlite3."""

    def __init__(self, folder: Path, url: str = "", **settings: Any) -> None:
        """Open one connection."""
        super().__init__(folder, url, **settings)
        self.db = sqlite3.connect(self.file)

    def execute(self, sql: str, values: Any = ()) -> object:
        """See above."""
        return self.db.execute(sql, values)

    def commit(self) -> None:
        """See above."""
        self.db.commit()

    def rollback(self) -> None:
        """See above."""
        self.db.rollback()

    def connect(self) -> Connection:
        """See above."""
        return sqlite3.connect(self.file)

    def close(self) -> None:
        """See above."""
        self.db.close()
        self.app.close()


class AlchemyShop(Shop):
    """Written with SQLAlchemy."""

    def __init__(self, folder: Path, url: str = "", **settings: Any) -> None:
        """Open one session."""
        super().__init__(folder, url, **settings)
        self.engine = sqlalchemy.create_engine(f"sqlite:///{self.file}", poolclass=NullPool)
        self.session = Session(self.engine)

    def execute(self, sql: str, values: Any = ()) -> object:
        """See above."""
        return self.session.execute(sqlalchemy.text(sql), values or None)

    def commit(self) -> None:
        """See above."""
        self.session.commit()

    def rollback(self) -> None:
        """See above."""
        self.session.rollback()

    def connect(self) -> Connection:
        """See above."""
        return self.engine.raw_connection()

    def close(self) -> None:
        """See above."""
        self.session.close()
        self.engine.dispose()
        self.app.close()


SHOPS: dict[str, type[Shop]] = {"sqlite3": PlainShop, "sqlalchemy": AlchemyShop}
