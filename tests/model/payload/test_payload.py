"""The envelope, its limits, checksums and fingerprints: what every store keeps (S5, S33, S34)."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlane.model.errors import PayloadTooLarge, invalid_job
from fairlane.model.payload.encoding import (
    ENVELOPE,
    PayloadRules,
    Undecodable,
    Unencodable,
    checksum,
    decode_arguments,
    decode_result,
    encode_arguments,
    encode_result,
    fingerprint,
    stored_fingerprint,
    verify,
)
from tests.model.payload.payload_values import ENUMS, Colour, arguments, portrait, values

BARE = len(b'{"v":1,"arguments":{"x":""}}')


def sized(size: int) -> dict[str, str]:
    """Return arguments that take exactly so many bytes."""
    return {"x": "a" * (size - BARE)}


def test_the_envelope_has_a_version_and_the_arguments() -> None:
    """001-EN-5: one object, compact, version first."""
    assert ENVELOPE == 1
    assert encode_arguments({"to": "ada", "n": 1}).data == b'{"v":1,"arguments":{"to":"ada","n":1}}'


@given(arguments)
@settings(max_examples=120, deadline=None)
def test_what_is_encoded_comes_back_exactly(given_arguments: Any) -> None:
    """001-EN-1 to 3: value, type, fold, zone, sign and order."""
    encoded = encode_arguments(given_arguments, enums=ENUMS)
    verify(encoded.data, encoded.checksum)
    assert portrait(decode_arguments(encoded.data, enums=ENUMS)) == portrait(given_arguments)


@given(values)
@settings(max_examples=25, deadline=None)
def test_a_result_comes_back_exactly(value: Any) -> None:
    """S34: results are encoded like payloads."""
    assert portrait(decode_result(encode_result(value), enums=ENUMS)) == portrait(value)


@given(arguments)
@settings(max_examples=25, deadline=None)
def test_equal_arguments_give_equal_bytes(given_arguments: Any) -> None:
    """Sets have no order of their own; decoding builds new ones with another history."""
    data = encode_arguments(given_arguments).data
    assert encode_arguments(decode_arguments(data, enums=ENUMS)).data == data


@pytest.mark.parametrize("mapping", [MappingProxyType({"a": 1}), OrderedDict(a=1)])
def test_any_mapping_of_arguments_will_do(mapping: Any) -> None:
    """Only the values inside must be plain; who binds the arguments may bind them into what he likes."""
    assert encode_arguments(mapping).data == b'{"v":1,"arguments":{"a":1}}'


def test_encoding_leaves_the_arguments_as_they_are() -> None:
    """A caller may go on using what he passed."""
    given_arguments = {"rows": [{"$x": {3, 1}}], "t": (1,)}
    encode_arguments(given_arguments)
    assert given_arguments == {"rows": [{"$x": {3, 1}}], "t": (1,)}


# --- size --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "large"), [(10_240, False), (10_241, True), (1_048_576, True)])
def test_more_than_ten_kilobytes_are_large(size: Any, large: Any) -> None:
    """002-TR-4: 10,241 bytes warn, 10,240 do not; the limit itself passes."""
    encoded = encode_arguments(sized(size))
    assert (len(encoded.data), encoded.large) == (size, large)


@pytest.mark.parametrize("size", [1_048_577, 2_000_000])
def test_more_than_a_megabyte_is_refused(size: Any) -> None:
    """002-TR-4: with the size, the limit and what to do, as the narrowest error."""
    with pytest.raises(Unencodable) as refusal:
        encode_arguments(sized(size))
    (problem,) = refusal.value.problems
    assert (problem.index, problem.field, problem.code) == (0, "arguments", "too_large")
    assert f"{size:,}" in problem.message
    assert "1,048,576" in problem.message
    assert isinstance(invalid_job(refusal.value.problems), PayloadTooLarge)


def test_what_is_stored_beside_counts_too() -> None:
    """W5: arguments and metadata together."""
    rules = PayloadRules(warn_over=100, max_size=200)
    assert not encode_arguments(sized(60), rules=rules, beside=40).large
    assert encode_arguments(sized(60), rules=rules, beside=41).large
    assert encode_arguments(sized(60), rules=rules, beside=140).large
    with pytest.raises(Unencodable):
        encode_arguments(sized(60), rules=rules, beside=141)


def test_more_values_than_bytes_are_refused_before_they_are_written() -> None:
    """A list that cannot fit is not turned into JSON first, and doubling 30 times over has an end."""
    doubled: list[object] = []
    for _ in range(30):
        doubled = [doubled, doubled]
    for value in (doubled, [None] * 10_000):
        with pytest.raises(Unencodable) as refusal:
            encode_arguments({"x": value}, rules=PayloadRules(max_size=10_000))
        assert refusal.value.problems[-1].code == "too_large"
        assert refusal.value.problems[-1].field == "arguments"


@pytest.mark.parametrize("max_depth", [0, -1, 129])
def test_a_depth_that_cannot_be_kept_is_no_rule(max_depth: Any) -> None:
    """Reading and writing call themselves once a level."""
    with pytest.raises(ValueError, match="1 to 128"):
        PayloadRules(max_depth=max_depth)


# --- results -----------------------------------------------------------------------------------------


def test_a_result_of_none_is_not_stored() -> None:
    """S34, in both directions."""
    assert encode_result(None) is None
    assert decode_result(None) is None


@pytest.mark.parametrize("falsy", [False, 0, "", [], {}])
def test_other_results_are_stored_however_empty(falsy: Any) -> None:
    """Only None is nothing."""
    assert portrait(decode_result(encode_result(falsy))) == portrait(falsy)


def test_a_result_of_more_than_64_kilobytes_is_refused() -> None:
    """S34: the limit itself passes."""
    bare = len(b'{"v":1,"result":""}')
    assert encode_result("a" * (65_536 - bare)) is not None
    with pytest.raises(Unencodable) as refusal:
        encode_result("a" * (65_537 - bare))
    assert [(p.field, p.code) for p in refusal.value.problems] == [("result", "too_large")]


def test_a_result_that_cannot_be_encoded_is_refused_with_its_path() -> None:
    """S34: dead, saying why."""
    with pytest.raises(Unencodable) as refusal:
        encode_result({"file": [object()]})
    assert [(p.field, p.code) for p in refusal.value.problems] == [("result.file[0]", "payload")]


def test_a_result_may_hold_any_enum() -> None:
    """The type hint of the return value names it for the reader."""
    data = encode_result(Colour.RED)
    assert decode_result(data, enums=ENUMS) is Colour.RED
    with pytest.raises(Undecodable, match="result is of the Enum 'Colour'"):
        decode_result(data)


# --- reading what was never written ------------------------------------------------------------------

DAMAGED = {
    b"": "not JSON",
    b"\xff": "not JSON",
    b'{"v":1,"arguments":{"x":"\xff"}}': "not JSON",
    b'{"v":1,"arguments":{"x":1e999}}': "not JSON",
    b'{"v":1,"arguments":{"x":NaN}}': "not JSON",
    b'{"v":1,"arguments":{}}{}': "not JSON",
    b"\x80\x04]\x94.": "not JSON",
    b'{"v":1,"arguments":{"x":' + b"[" * 100_000: "nested without end",
    b'{"v":1,"arguments":{"x":' + b"[" * 200 + b"]" * 200 + b"}}": "more than 128 deep",
    b"[]": "no envelope",
    b"{}": "no envelope",
    b'{"v":2,"arguments":{}}': "version is 2, this version of Fairlane reads 1",
    b'{"v":0,"arguments":{}}': "version is 0",
    b'{"v":true,"arguments":{}}': "version is not a number",
    b'{"v":1.0,"arguments":{}}': "version is not a number",
    b'{"v":"hunter2","arguments":{}}': "version is not a number",
    b'{"v":1}': "no field 'arguments'",
    b'{"v":1,"result":1}': "no field 'arguments'",
    b'{"v":1,"arguments":{},"task":"x"}': "unknown fields: 'task'",
    b'{"v":1,"arguments":{},"a":0,"b":0,"c":0,"d":0,"e":0,"f":0}': "'a', 'b', 'c', 'd', 'e'$",
    b'{"v":1,"arguments":[]}': "arguments is not an object",
    b'{"v":1,"arguments":{"$set":[]}}': "arguments is not an object",
}


@pytest.mark.parametrize("data", DAMAGED)
def test_bytes_that_were_never_written_are_refused_clearly(data: Any) -> None:
    """001-EN-5, 001-EN-8: unknown versions and unknown envelope fields included."""
    with pytest.raises(Undecodable, match=DAMAGED[data]) as refusal:
        decode_arguments(data)
    assert "hunter2" not in str(refusal.value)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


@given(st.binary(max_size=60))
@settings(max_examples=40, deadline=None)
def test_no_bytes_break_the_reader(data: Any) -> None:
    """Whatever is stored, the answer is arguments or `Undecodable`."""
    with suppress(Undecodable):
        decode_arguments(data)


TAGS = [
    "$datetime",
    "$date",
    "$time",
    "$timedelta",
    "$decimal",
    "$uuid",
    "$bytes",
    "$enum",
    "$set",
    "$frozenset",
]
json_texts = st.sampled_from([
    "2026-07-01T10:00:00.000000Z", "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z",
    "2026-07-01", "10:00:00.000000", "10:00:00.000000+02:00", "+02:00", "-23:59", "+24:00", "Europe/Berlin",
    "America", "../x", "", "1.5", "1E+999999999999999999999", "Infinity", "YQ==", "Colour", "RED", "Mode",
    "READ", "\x00",
])  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | json_texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(json_texts | st.sampled_from(["zone", "name", "wall", "fold"]), inner, max_size=3)
        | st.builds(
            lambda tag, content, fields: {tag: content} | fields,
            st.sampled_from([*TAGS, "$tuple", "$dict", "$odd"]),
            inner,
            st.just({}) | st.dictionaries(st.sampled_from(["zone", "name", "wall", "fold", "$date"]), inner),
        )
    ),
    max_leaves=8,
)


@given(json_values)
@settings(max_examples=150, deadline=None)
@example({"$datetime": "9999-12-31T23:59:59.999999Z", "zone": "+02:00"})
@example({"$datetime": "2026-07-01T10:00:00.000000Z", "zone": "America"})
@example({"$decimal": "1E+999999999999999999999"})
def test_no_json_breaks_the_reader_and_what_it_reads_can_be_written(value: Any) -> None:
    """Tags with any content and any other fields: refused, or read as a value that round-trips."""
    data = msgspec.json.encode({"v": 1, "arguments": {"x": value}})
    try:
        read = decode_arguments(data, enums=ENUMS)
    except Undecodable:
        return
    again = decode_arguments(encode_arguments(read, rules=PayloadRules(max_depth=128)).data, enums=ENUMS)
    assert portrait(again) == portrait(read)


# --- checksum ----------------------------------------------------------------------------------------


def test_the_checksum_is_the_crc_of_the_stored_bytes() -> None:
    """M11: any language can compute it."""
    encoded = encode_arguments({"x": 1})
    assert encoded.checksum == zlib.crc32(encoded.data) == checksum(encoded.data)


@given(st.integers(0), arguments)
@settings(max_examples=20, deadline=None)
def test_a_flipped_bit_is_found(bit: Any, given_arguments: Any) -> None:
    """001-EN-9: whichever bit it is."""
    encoded = encode_arguments(given_arguments)
    damaged = bytearray(encoded.data)
    damaged[bit // 8 % len(damaged)] ^= 1 << bit % 8
    with pytest.raises(Undecodable, match="checksum"):
        verify(bytes(damaged), encoded.checksum)


# --- fingerprint -------------------------------------------------------------------------------------


def shuffled(value: Any) -> Any:
    """Return an equal value whose dicts and sets were filled the other way round."""
    if isinstance(value, dict):
        return {key: shuffled(item) for key, item in reversed(value.items())}
    if type(value) in {list, tuple, set, frozenset}:
        items = [shuffled(item) for item in value]
        return type(value)(items if isinstance(value, list | tuple) else reversed(items))
    return value


@given(arguments)
@settings(max_examples=25, deadline=None)
def test_order_of_keys_and_members_does_not_change_the_fingerprint(given_arguments: Any) -> None:
    """S13: the same call, however its dicts were filled."""
    first = fingerprint("mail", given_arguments)
    assert len(first) == 16
    assert first == fingerprint("mail", shuffled(given_arguments))


@given(arguments, arguments)
@settings(max_examples=15, deadline=None)
@example({"x": 1}, {"x": True})
@example({"x": 1}, {"x": 1.0})
@example({"x": (1, 2)}, {"x": (2, 1)})
@example({"x": {1}}, {"x": frozenset({1})})
def test_other_arguments_have_another_fingerprint(one: Any, other: Any) -> None:
    """S13: types count, and the order of lists and tuples."""
    same = encode_arguments(shuffled_by_key(one)).data == encode_arguments(shuffled_by_key(other)).data
    assert (fingerprint("mail", one) == fingerprint("mail", other)) is same


def shuffled_by_key(value: Any) -> Any:
    """Return an equal value whose dicts have sorted keys."""
    if isinstance(value, dict):
        return {key: shuffled_by_key(value[key]) for key in sorted(value)}
    return type(value)(map(shuffled_by_key, value)) if type(value) in {list, tuple} else value


@given(arguments)
@settings(max_examples=50, deadline=None)
def test_stored_arguments_have_the_fingerprint_of_the_call(given_arguments: Any) -> None:
    """S75: a job that is run again byte for byte is the same call."""
    stored = encode_arguments(given_arguments, enums=ENUMS).data
    assert stored_fingerprint("mail", stored) == fingerprint("mail", given_arguments)


def test_bytes_that_are_no_payload_have_no_fingerprint() -> None:
    """They are undecodable."""
    with pytest.raises(Undecodable):
        stored_fingerprint("mail", b"{}")


def test_another_task_has_another_fingerprint() -> None:
    """The same arguments to another task are another call."""
    assert fingerprint("mail.send", {}) != fingerprint("mail.sent", {})


def test_a_fingerprint_of_what_cannot_be_encoded_is_refused() -> None:
    """There is nothing to compare."""
    with pytest.raises(Unencodable):
        fingerprint("mail", {"x": object()})
