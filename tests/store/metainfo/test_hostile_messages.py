"""Messages made by hand: whatever stands in them, the error is the caller's."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from calque.errors import CalqueError, Unavailable, Unexpected
from calque.store.metainfo import CALLS
from calque.store.metainfo.pb import metainfo_pb2 as pb
from tests.store.conftest import SatelliteUnderTest
from tests.store.uplinkish import Client

MESSAGES = 400
TEXTS = ["", "first", "second", "nowhere", "F\0", "\0", ".." * 40, "é" * 30, "\U0010ffff"]
NUMBERS = [0, 1, -1, 2, 10, 1000, 10_001, 2**31 - 1, -(2**31)]
LARGE = [*NUMBERS, 2**40, 2**63 - 1, -(2**63)]


class Forger:
    """Fills messages with what is right, nearly right and absurd."""

    def __init__(self, client: Client, seed: int) -> None:
        self._client = client
        self._chance = random.Random(seed)
        upload_id = client.begin(b"pending").upload_id
        begun = client.satellite.begin_segment(
            pb.SegmentBeginRequest(header=client.header, upload_id=upload_id)
        )
        self._bytes = [
            *(b"", b"\0", b"\xff" * 5000, b"a1", b"a2", b"new", b"pending"),
            *(b"n" * 12, b"k" * 48, b"s" * 16, b"r" * 32, b"\1" * 32),
            *(upload_id, begun.segment_id, client.begin_copy(b"a1", b"new").operation_id),
        ]
        self._values: dict[int, Callable[[], Any]] = {
            FieldDescriptor.TYPE_BYTES: lambda: self._chance.choice(self._bytes),
            FieldDescriptor.TYPE_STRING: lambda: self._chance.choice(TEXTS),
            FieldDescriptor.TYPE_INT32: lambda: self._chance.choice(NUMBERS),
            FieldDescriptor.TYPE_INT64: lambda: self._chance.choice(LARGE),
            FieldDescriptor.TYPE_BOOL: lambda: self._chance.random() < 0.5,
            FieldDescriptor.TYPE_ENUM: lambda: self._chance.choice([0, 1, 2, 3, 99]),
        }

    def forge(self, name: str) -> Message:
        message = CALLS[name].request()
        self._fill(message)
        message.header.CopyFrom(self._client.header)  # type: ignore[attr-defined]
        return message

    def _fill(self, message: Message) -> None:
        for field in message.DESCRIPTOR.fields:
            if field.name == "header" or self._chance.random() < 0.3:
                continue
            value = getattr(message, field.name)
            if field.is_repeated:
                for _ in range(self._chance.choice([0, 1, 2, 5])):
                    if field.message_type:
                        self._fill(value.add())
                    else:
                        value.append(self._values[field.type]())
            elif field.message_type:
                value.SetInParent()
                self._fill(value)
            else:
                setattr(message, field.name, self._values[field.type]())


@pytest.mark.parametrize("seed", range(2))
def test_any_message_is_answered(satellite: SatelliteUnderTest, seed: int) -> None:
    """Never Internal, never Unavailable; the metabase stays whole, as the fixture sees."""
    client = satellite.client
    for number in range(4):
        client.upload(b"a%d" % number, segments=number)
    forger, names = Forger(client, seed), sorted(set(CALLS) - {"RevokeApiKey"})
    for number in range(MESSAGES):
        name = names[number % len(names)]
        message = forger.forge(name)
        try:
            client.satellite.call(name, message)
        except (Unexpected, Unavailable) as error:
            pytest.fail(f"{name} answered {error!r} to {message}")
        except CalqueError:
            continue
