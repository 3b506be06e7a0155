"""`ctx.metadata`: what may be written, in which words the rest is refused, and what is handed on (S73)."""

from __future__ import annotations

import math
from collections import UserDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import msgspec
import pytest

from fairlane import Context, Fairlane, Task
from fairlane.app.task.context import AttemptControl
from fairlane.app.task.job_metadata import JobMetadata, room_of
from tests.app.world import World, note

GIVEN = {"plan": "pro", "seen": ["a"], "at": {"page": 1}}


@pytest.fixture
def written() -> list[bytes]:
    """What was handed on, in order."""
    return []


@pytest.fixture
def metadata(written: list[bytes]) -> JobMetadata:
    """The metadata of a job that has some, with room for more."""
    return JobMetadata(GIVEN, written.append, 200)


def test_it_reads_like_a_dict_and_hands_nothing_on(metadata: JobMetadata, written: list[bytes]) -> None:
    """Keys in the order in which they were written."""
    assert dict(metadata) == GIVEN
    assert (list(metadata), len(metadata), "plan" in metadata, "x" in metadata) == (
        ["plan", "seen", "at"],
        3,
        True,
        False,
    )
    assert (metadata.get("x"), metadata["plan"], repr(metadata)) == (None, "pro", repr(GIVEN))
    with pytest.raises(KeyError):
        metadata["x"]
    assert written == []


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (lambda m: m.__setitem__("step", 3), {**GIVEN, "step": 3}),
        (lambda m: m.__delitem__("seen"), {"plan": "pro", "at": {"page": 1}}),
        (lambda m: m.update({"plan": None}, step=1.5), {**GIVEN, "plan": None, "step": 1.5}),
        (lambda m: m.update([("plan", True)]), {**GIVEN, "plan": True}),
        (lambda m: m.pop("at"), {"plan": "pro", "seen": ["a"]}),
        (lambda m: m.setdefault("step", []), {**GIVEN, "step": []}),
        (lambda m: m.clear(), {}),
        (lambda m: m.update({}, at={"of": [1, {"x": None}]}), {**GIVEN, "at": {"of": [1, {"x": None}]}}),
    ],
)
def test_each_change_hands_the_whole_on_once(
    metadata: JobMetadata, written: list[bytes], change: Callable[[JobMetadata], Any], after: dict[str, Any]
) -> None:
    """Encoded as it will be stored."""
    change(metadata)
    assert [msgspec.json.decode(one) for one in written] == [after]
    assert dict(metadata) == after


def test_the_same_value_again_hands_nothing_on(metadata: JobMetadata, written: list[bytes]) -> None:
    """So a handler may say in every iteration where it stands."""
    metadata["plan"] = "pro"
    metadata.update(at={"page": 1})
    assert written == []
    metadata["plan"] = "free"
    metadata["plan"] = "free"
    assert len(written) == 1


def test_what_is_read_is_a_copy(metadata: JobMetadata, written: list[bytes]) -> None:
    """A change that nobody would store does not look as if it were stored."""
    metadata["seen"].append("b")  # type: ignore[union-attr]
    metadata["at"]["page"] = 9  # type: ignore[index, call-overload]
    assert dict(metadata) == GIVEN
    seen = ["b"]
    metadata["seen"] = seen  # type: ignore[assignment]
    seen.append("c")
    assert metadata["seen"] == ["b"]
    assert len(written) == 1


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("when", datetime, "metadata.when: is of type type; use None, bool, int, float, str, list or dict"),
        ("ids", {1, 2}, "metadata.ids: is of type set; use None"),
        ("x", [1, {"y": b"no"}], r"metadata.x\[1\].y: is of type bytes"),
        ("x", math.nan, "metadata.x: is not a finite number"),
        ("x", 2**63, "metadata.x: is an integer beyond 64 bits"),
        ("x", "\udc80", "metadata.x: is text with a lone surrogate"),
        ("x", {1: 2}, "metadata.x: has a key of type int"),
        (7, "x", "metadata: has a key of type int"),
        (
            "x",
            "y" * 201,
            r"metadata: takes 2\d\d bytes, beside the arguments there is room for 200; store less",
        ),
    ],
)
def test_what_cannot_be_stored_is_refused_at_the_assignment(
    metadata: JobMetadata, written: list[bytes], key: Any, value: Any, words: str
) -> None:
    """With the path of the value; nothing has changed."""
    with pytest.raises(ValueError, match=words):
        metadata[key] = value
    with pytest.raises(ValueError, match=words):
        metadata.update({"fine": 1, key: value})
    assert dict(metadata) == GIVEN
    assert written == []


def test_an_update_takes_what_a_dict_takes(metadata: JobMetadata) -> None:
    """And nothing else."""
    metadata.update(UserDict(a=1), b=2)
    assert (metadata["a"], metadata["b"]) == (1, 2)
    with pytest.raises(TypeError):
        metadata.update({}, {})


def test_threads_of_one_handler_lose_nothing(written: list[bytes]) -> None:
    """Each change is made to the newest whole."""
    metadata = JobMetadata({}, written.append)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: metadata.update({str(number): number}), range(200)))
    assert (
        dict(metadata) == msgspec.json.decode(written[-1]) == {str(number): number for number in range(200)}
    )


async def test_the_room_is_what_arguments_and_tags_leave(world: World) -> None:
    """S5: the same bound as at the enqueue, in both directions."""
    app = world.app(payload={"max_size": 2_000, "warn_over": 1_000})
    task = app.task(name="note")(note).using(tenant="acme", tags=["red", "blü"])
    await task.using(metadata={"x": "y" * 100}).aenqueue("z" * 500)
    job = world.one()
    room = room_of(job, 2_000)
    assert room == 2_000 - len(job.payload) - 7
    written: list[bytes] = []
    JobMetadata({}, written.append, room)["x"] = "y" * (room - 8)
    assert len(written[0]) == room
    with pytest.raises(ValueError, match=r"store less, or raise payload\.max_size"):
        JobMetadata({}, written.append, room)["x"] = "y" * (room - 7)


async def test_a_context_hands_metadata_to_the_worker(
    world: World, app: Fairlane, task: Task[..., None]
) -> None:
    """For the next renewal once, and for the settlement."""
    control = AttemptControl()
    job = await task.using(metadata={"plan": "pro"}).aenqueue("x")
    context = Context(tenant="acme", attempt=1, show=lambda: job, fence=1, control=control)
    assert dict(context.metadata) == {"plan": "pro"}
    assert (control.take_metadata(), control.metadata) == (None, None)
    context.metadata["step"] = 3
    assert context.metadata["step"] == 3
    assert (control.take_metadata(), control.take_metadata()) == (b'{"plan":"pro","step":3}', None)
    assert control.metadata == b'{"plan":"pro","step":3}'
    assert context.job.metadata == {"plan": "pro"}, "the job as it was when the attempt began"


def test_metadata_whose_renewal_failed_goes_with_the_next_unless_there_is_newer() -> None:
    """It is not lost, and it does not overtake."""
    control = AttemptControl()
    control.set_metadata(b"1")
    control.put_back_metadata(control.take_metadata() or b"")
    assert control.take_metadata() == b"1"
    control.set_metadata(b"2")
    control.put_back_metadata(b"1")
    assert control.take_metadata() == b"2"
