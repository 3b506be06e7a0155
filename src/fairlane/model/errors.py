"""Say what went wrong, where, and what to do. Knows no store and raises nothing itself.

FairlaneError
├── ConfigError (ValueError)   a setting or an option is wrong: .key .source .allowed
├── InvalidJob (ValueError)    badly formed: .problems, one entry per bad item and field
│   ├── UnknownTask
│   ├── UnknownTenant
│   ├── TenantRequired
│   ├── PayloadTooLarge
│   └── SensitivePayload
├── Refused                    well formed, but policy says no
│   ├── WaitingLimitReached    .tenant .queue .waiting .limit
│   ├── QueueFull              .queue .waiting .limit
│   ├── Closed                 .subject .reason
│   ├── DuplicateJob           .existing
│   ├── IdempotencyMismatch    .existing
│   ├── TenantMismatch         .tenant .scope
│   │   └── InsideTenant       a call for all tenants, or for operators, from inside one
│   ├── OutsideTenant          a call from no tenant, in a worker
│   ├── UserExists             .name
│   ├── WrongState             .id .state; a job cannot be changed so in its state
│   └── QueueNotEmpty          .queue .jobs; a queue cannot be removed yet
├── JobNotFound (LookupError)
├── JobFailed                  .job; from result() of a dead job
├── JobCancelled               .job
├── ResultGone                 .job
├── ClaimLost                  from succeed_in(): the attempt no longer holds its job
├── WorkerNotFound (LookupError)
├── WorkerSilent               a worker that was asked has not answered in time
├── UserNotFound (LookupError)
├── TokenNotFound (LookupError)
├── SessionNotFound (LookupError)
├── TooManyAttempts            .retry_after; to sign in
├── StartupFailed              from a worker: a resource or start-up function raised
└── StoreError                 .retry_safe: may the same call be repeated?
    ├── StoreUnavailable
    ├── StoreBusy
    ├── StoreGone              what was open is not there any more; only a new start can help
    ├── EnqueueUnknown         .ids; sent, not confirmed: repeat() sends the same jobs again
    ├── SchemaTooOld
    ├── SchemaTooNew
    └── Unsupported            e.g. connection= where the store cannot join a transaction
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fairlane.model.repeatable import Repeatable


class FairlaneError(Exception):
    """The base class of every error that Fairlane raises on purpose."""


class ConfigError(FairlaneError, ValueError):
    """A setting or an option is wrong. The message names it, its source and what is allowed."""

    def __init__(self, message: str, *, key: str = "", source: str = "", allowed: str = "") -> None:
        """Build the message from its parts; empty parts are left out."""
        parts = [f"{key}: {message}" if key else message]
        if source:
            parts.append(f"(from {source})")
        if allowed:
            parts.append(f"Allowed: {allowed}.")
        super().__init__(" ".join(parts))
        self.key = key
        self.source = source
        self.allowed = allowed


@dataclass(frozen=True, slots=True)
class Problem:
    """A bad field of an item: what is wrong and what to do. `code` is stable, for programs."""

    index: int
    field: str
    message: str
    hint: str
    code: str = "invalid"

    def __str__(self) -> str:
        """Return one line for people.

        >>> print(Problem(3, "tenant", "has a space", "use letters"))
        [3] tenant: has a space; use letters
        """
        return f"[{self.index}] {self.text}"

    @property
    def text(self) -> str:
        """The same without the index, for a single item.

        >>> print(Problem(0, "tenant", "has a space", "use letters").text)
        tenant: has a space; use letters
        """
        return f"{self.field}: {self.message}; {self.hint}"


class InvalidJob(FairlaneError, ValueError):
    """A job is invalid and nothing was stored. `problems` lists every bad item and field."""

    def __init__(
        self, problems: Iterable[Problem], text: str | None = None, *, is_batch: bool = False
    ) -> None:
        """Show all problems, one per line (in a batch with the index of its item), or `text` instead."""
        self.problems: Sequence[Problem] = tuple(problems)
        lines = "\n".join(f"  {problem if is_batch else problem.text}" for problem in self.problems)
        super().__init__(text or f"nothing was enqueued, {len(self.problems)} problem(s):\n{lines}")


class UnknownTask(InvalidJob):
    """No task with that name is registered."""


class UnknownTenant(InvalidJob):
    """The tenant is not declared, and tenancy is `declared`."""


class TenantRequired(InvalidJob):
    """The enqueue names no tenant, and tenancy is not `open`."""


class PayloadTooLarge(InvalidJob):
    """The encoded payload, or the batch, is over its limit."""


class SensitivePayload(InvalidJob):
    """The payload seems to contain a secret, and the policy is `reject`."""


_BY_CODE: dict[str, type[InvalidJob]] = {
    "unknown_task": UnknownTask,
    "unknown_tenant": UnknownTenant,
    "tenant_required": TenantRequired,
    "too_large": PayloadTooLarge,
    "sensitive": SensitivePayload,
}


def invalid_job(problems: Sequence[Problem], *, is_batch: bool = False) -> InvalidJob:
    """Return the most specific error for these problems: a subclass only if all have its code.

    >>> a = Problem(0, "payload", "is too large", "send a reference", "too_large")
    >>> b = Problem(0, "tenant", "is empty", "name one")
    >>> type(invalid_job([a])).__name__, type(invalid_job([a, b])).__name__
    ('PayloadTooLarge', 'InvalidJob')
    """
    codes = {problem.code for problem in problems}
    kind = _BY_CODE.get(codes.pop(), InvalidJob) if len(codes) == 1 else InvalidJob
    return kind(problems, is_batch=is_batch)


class Refused(FairlaneError):
    """The job is valid, but a policy refuses it. Nothing was stored."""


class WaitingLimitReached(Refused):
    """The tenant has reached its limit of waiting jobs in the queue."""

    def __init__(self, tenant: str, queue: str, waiting: int, limit: int) -> None:
        """Name the tenant, the queue, what waits and the limit."""
        super().__init__(f"tenant {tenant} has {waiting} waiting jobs in queue {queue}, the limit is {limit}")
        self.tenant = tenant
        self.queue = queue
        self.waiting = waiting
        self.limit = limit


class QueueFull(Refused):
    """The queue has reached its limit of waiting jobs, over all tenants."""

    def __init__(self, queue: str, waiting: int, limit: int) -> None:
        """Name the queue, what waits and the limit."""
        super().__init__(f"queue {queue} has {waiting} waiting jobs, its max_waiting is {limit}")
        self.queue = queue
        self.waiting = waiting
        self.limit = limit


class Closed(Refused):
    """A queue, tenant or task takes no new jobs for now."""

    def __init__(self, subject: str, reason: str) -> None:
        """Name what is closed and why."""
        super().__init__(f"{subject} is closed for new jobs: {reason}")
        self.subject = subject
        self.reason = reason


class DuplicateJob(Refused):
    """The idempotency key was used before, and the call asked for an error then."""

    def __init__(self, key: str, existing: UUID) -> None:
        """Name the key and the job that has it."""
        super().__init__(f"idempotency key {key!r} belongs to job {existing}")
        self.existing = existing


class IdempotencyMismatch(Refused):
    """The idempotency key was used before for another task or other arguments."""

    def __init__(self, key: str, existing: UUID) -> None:
        """Name the key and the job that has it."""
        super().__init__(f"idempotency key {key!r} belongs to job {existing} with another task or arguments")
        self.existing = existing


class TenantMismatch(Refused):
    """Code that acts for one tenant named another."""

    def __init__(self, tenant: str, scope: str) -> None:
        """Name the tenant asked for and the tenant that asked."""
        super().__init__(
            f"tenant {tenant} was named inside tenant {scope}; code inside a tenant acts for that one alone, "
            "unless it says why with app.as_system(reason=...)"
        )
        self.tenant = tenant
        self.scope = scope


class InsideTenant(TenantMismatch):
    """Code that acts for one tenant asked for something of all tenants, or of operators."""

    def __init__(self, what: str, scope: str) -> None:
        """Name what was asked for, the tenant, and who may do it."""
        Refused.__init__(
            self,
            f"{what}, and this code acts for tenant {scope}; do it outside of a tenant, in a task declared "
            "system=True, or say why with app.as_system(reason=...)",
        )
        self.tenant = self.scope = scope


class OutsideTenant(Refused):
    """Code in a worker made a call outside of any tenant, such as in a thread that a handler started."""

    def __init__(self) -> None:
        """Say how to act for a tenant."""
        super().__init__(
            "this code runs in a worker, but inside no tenant; run it in the handler's own context "
            "(contextvars.copy_context().run), or say why it may act for all with app.as_system(reason=...)"
        )


class WrongState(Refused):
    """The job's state does not allow the change. Nothing was changed."""

    def __init__(self, id: UUID, state: str, what: str, todo: str) -> None:
        """Name the job, its state, the rule and what to do instead."""
        super().__init__(f"job {id} is {state}: {what}; {todo}")
        self.id = id
        self.state = state


class JobNotFound(FairlaneError, LookupError):
    """No job with that id exists for the caller; a job of another tenant answers the same."""

    def __init__(self, id: UUID | str) -> None:
        """Name the id."""
        super().__init__(f"no job {id}")
        self.id = id


class _Ended(FairlaneError):
    """The job ended without a result to return."""

    verb = "ended"

    def __init__(self, job: Any, why: str = "") -> None:
        """Keep the job for the caller."""
        super().__init__(f"job {job.id} {self.verb}{': ' + why if why else ''}")
        self.job = job


class JobFailed(_Ended):
    """The job is dead."""

    verb = "is dead"


class JobCancelled(_Ended):
    """The job was cancelled."""

    verb = "was cancelled"


class ResultGone(_Ended):
    """The job succeeded, but its result is no longer stored, or never was."""

    verb = "succeeded, but its result is no longer kept"

    def __init__(self, job: Any, why: str = "") -> None:
        """`why` says why it was never stored."""
        super().__init__(job, why)
        if why:
            self.args = (f"job {job.id} succeeded, but its result was dropped: {why}",)


class ClaimLost(FairlaneError):
    """The attempt has lost its job: another worker owns it, or it is settled. Roll the transaction back."""

    def __init__(self, id: UUID, attempt: int) -> None:
        """Name the job and the attempt."""
        super().__init__(
            f"attempt {attempt} no longer holds job {id}: another has it, or it is settled; "
            "roll the transaction back"
        )
        self.id = id


class StoreError(FairlaneError):
    """The store failed. `retry_safe` says whether the same call may be repeated."""

    retry_safe = False

    def __init__(self, message: str, *, retry_safe: bool | None = None) -> None:
        """`retry_safe` overrides the value of the class."""
        super().__init__(message)
        if retry_safe is not None:
            self.retry_safe = retry_safe


class StoreUnavailable(StoreError):
    """The store cannot be reached."""

    retry_safe = True


class StoreBusy(StoreError):
    """The store did not answer in time."""

    retry_safe = True


class StoreGone(StoreError):
    """The open store was deleted or replaced. Waiting does not help, and nothing can be settled."""


class EnqueueUnknown(StoreError):
    """The enqueue was sent but not confirmed: its jobs, `ids`, may or may not be stored.

    `repeat()` sends the same jobs again and stores none twice. `retry_safe` is about the call itself: calling
    it again creates other jobs, unless each has an idempotency key.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_safe: bool | None = None,
        ids: Sequence[UUID] = (),
        sent: Repeatable | None = None,
    ) -> None:
        """Keep what was sent, without showing it."""
        super().__init__(message, retry_safe=retry_safe)
        self.ids = tuple(ids)
        self._sent = sent

    def repeat(self) -> Any:
        """Send the same jobs again under the same ids, and return what the first call would have returned.

        That is one `Job`, or the list of `enqueue_many`. Jobs that were stored answer as they are now, with
        `created` true; the others are stored now. May be called repeatedly, from any thread, also after
        `app.close()`. Raises what an enqueue raises, and `EnqueueUnknown` if it is still unknown.
        """
        return self._repeatable().repeat()

    async def arepeat(self) -> Any:
        """Send the same jobs again under the same ids; see `repeat`. Works on any event loop."""
        return await self._repeatable().arepeat()

    def _repeatable(self) -> Repeatable:
        if self._sent is None:
            message = (
                "there is nothing to repeat here: the error is a copy from another process, or not raised "
                "by an enqueue; look for the jobs with app.jobs.get(id)"
            )
            raise RuntimeError(message)
        return self._sent

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without what was sent: it belongs to the application of this process."""
        state = {**self.__dict__, "_sent": None}
        return type(self), self.args, state


class SchemaTooOld(StoreError):
    """The store must be migrated (`fairlane migrate`) before this version can use it."""


class SchemaTooNew(StoreError):
    """The store was migrated by a newer version of Fairlane."""


class Unsupported(StoreError):
    """This store cannot do that; the documentation lists the differences between stores."""
