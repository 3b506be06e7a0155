"""Stored bytes that were never written are refused by path and reason, without showing a value (S33)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fairlane.model.payload.encoding import Undecodable, decode_arguments

UNREADABLE = [
    ('{"$datetime":1}', "has a $datetime that is not text"),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","zone":1}', "has a zone that is not text"),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","zone":""}', "time zone that this machine does not know"),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","zone":"../../etc/passwd"}', "does not know"),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","zone":"America"}', "does not know"),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","zone":"+02:00+01:00"}', "not of the form +HH:MM"),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","zone":"+24:00"}', "not of the form"),
    (
        '{"$datetime":"2026-07-01T10:00:00.000000Z","zone":"Europe/Berlin","name":"x"}',
        "name without an offset",
    ),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","name":"x"}', "name without an offset"),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","zone":"+02:00","name":1}', "has a name that is not text"),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","fold":true}', "fold"),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","wall":"x"}', "not of the form that $datetime has"),
    ('{"$datetime":"2026-07-01T10:00:00.000000Z","wall":"2026-07-01"}', "not of the form that $datetime has"),
    ('{"$datetime":"9999-12-31T23:59:59.999999Z","zone":"+01:00"}', "not of the form that $datetime has"),
    ('{"$time":"10:00"}', "not of the form that $time has"),
    ('{"$time":"10:00:00.000000x02:00"}', "not of the form +HH:MM"),
    ('{"$time":"10:00:00.000000","name":"x"}', "name without an offset"),
    ('{"$timedelta":9223372036854775808}', "$timedelta"),
    ('{"$decimal":"1E+99999999999999999999"}', "$decimal"),
    ('{"$decimal":" 1"}', "$decimal"),
    ('{"$enum":"Colour"}', "$enum"),
    ('{"$enum":[]}', "$enum"),
    ('{"$enum":["Colour",1]}', "$enum"),
    ('{"$enum":["Colour","RED"],"x":1}', "$enum"),
    ('{"$tuple":{}}', "$tuple"),
    ('{"$tuple":[],"x":1}', "$tuple"),
    ('{"$dict":{},"x":1}', "$dict"),
    ('{"$set":[1,true]}', "twice"),
    ('{"$frozenset":[{}]}', "no set can hold"),
    ('{"$hunter2hunter2hunter2hunter2hunter2hunter2":1}', "unknown tag"),
]


@pytest.mark.parametrize(("wire", "why"), UNREADABLE)
def test_a_tagged_object_that_is_never_written_is_refused(wire: Any, why: Any) -> None:
    """By path, with the reason."""
    with pytest.raises(Undecodable) as refusal:
        decode_arguments(b'{"v":1,"arguments":{"x":[0,%s]}}' % wire.encode())
    assert str(refusal.value).startswith("arguments.x[1] ")
    assert why in str(refusal.value)
    assert refusal.value.__suppress_context__


def test_no_refusal_to_read_shows_the_value() -> None:
    """A dead letter's reason is shown to people who may not see the payload."""
    for tag in (
        "$datetime",
        "$date",
        "$time",
        "$timedelta",
        "$decimal",
        "$uuid",
        "$bytes",
        "$enum",
        "$tuple",
    ):
        with pytest.raises(Undecodable) as refusal:
            decode_arguments(b'{"v":1,"arguments":{"x":{"%s":"hunter2!"}}}' % tag.encode())
        assert "hunter2" not in str(refusal.value)


def test_when_a_zone_changed_its_rules_the_instant_stays() -> None:
    """The local time and fold that were stored no longer fit; the instant is what was meant."""
    stored = (
        b'{"v":1,"arguments":{"x":{"$datetime":"2026-07-01T10:00:00.000000Z","zone":"Europe/Berlin",%s}}}'
    )
    expected = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    assert decode_arguments(stored % b'"wall":"2026-07-01T11:00:00.000000"') == {"x": expected}
    read = decode_arguments(stored.replace(b"07-01T10:00", b"10-25T00:30") % b'"fold":1')["x"]
    assert (read.fold, read.astimezone(UTC).hour) == (0, 0)
