"""Ask a task's own function how long to wait before a retry (S26). Knows no policy and no clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeAlias

import msgspec

from fairlane.model.checking import is_number
from fairlane.model.failure import RETRIED, shown, text_of
from fairlane.model.instants import Duration
from fairlane.model.job import JobRecord
from fairlane.model.retry.backoff import retry_after
from fairlane.model.retry.decision import Failed

RetryDelay: TypeAlias = Callable[[BaseException, int], Duration | None]
"""Returns the delay after an error that is the n-th failure of its job; None for the policy's."""

_WIDTH: Final = 60

_replace = msgspec.structs.replace


def with_own_delay(result: Failed, error: BaseException, job: JobRecord, function: RetryDelay) -> Failed:
    """Return a failure with the delay that the task's function names, if a retry follows and names none.

    It is bounded to 0 to 24 hours. A function that raises, or returns no duration, counts as silent; what is
    wrong with it is in the result, for the worker to log.
    """
    failures = job.failures + 1
    is_retried = result.failure.error_class in RETRIED and failures < job.max_attempts
    if result.after is not None or not is_retried:
        return result
    try:
        answer: object = function(error, failures)
    except BaseException as broken:  # noqa: BLE001 (a user's function; S26: ignored then)
        return _replace(result, delay_error=f"it raised {type(broken).__name__}: {shown(broken)}")
    if answer is None:
        return result
    if isinstance(answer, timedelta) or (is_number(answer) and math.isfinite(answer)):
        return _replace(result, after=retry_after(answer))
    what = text_of(answer, _WIDTH, repr)
    return _replace(result, delay_error=f"it returned {what}, which is neither seconds, a timedelta nor None")
