"""Reads the event files of TensorBoard, without TensorBoard."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, object]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        value: object
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        yield number, value


def read_events(file: Path) -> list[tuple[int, dict[str, float]]]:
    """The steps with their values by tag, in the order of the file, which must end with one."""
    data = file.read_bytes()
    events = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        message = dict(_fields(data[at + 12 : at + 12 + length]))
        at += 16 + length
        if 3 in message:
            assert message[3] == b"brain.Event:2"
            continue
        values = {}
        for _, entry in _fields(message[5]):  # type: ignore[arg-type]
            parts = dict(_fields(entry))  # type: ignore[arg-type]
            values[parts[1].decode()] = parts[2]
        events.append((message.get(2, 0), values))
    assert at == len(data)
    return events
