"""How large the buffers of a Feather file (Arrow IPC) say they are, read from its metadata before anything is unpacked.

A compressed buffer begins with the size it unpacks to. A reader that trusts a damaged one asks for exabytes and is ended by
the system. So the few tables of the format that lead to the buffers are followed here: the footer lists the batches, a batch
its buffers (https://arrow.apache.org/docs/format/Columnar.html). They are flatbuffers: a table points back to a list of where
its fields are.
"""

from __future__ import annotations

import struct

MAGIC = b"ARROW1"
CONTINUED = 0xFFFFFFFF
RECORDS, DICTIONARY = 3, 2  # kinds of batches among the messages
MOST_BATCHES = 1 << 20


def unpacked_size(content: bytes) -> int:
    """Bytes that all buffers of the file unpack to.

    Raises
    ------
    ValueError, struct.error
        If the metadata do not lead to buffers within the file.
    """
    if len(content) < 20 or not content.startswith(MAGIC) or not content.endswith(MAGIC):
        raise ValueError("no Arrow file")
    (length,) = struct.unpack_from("<i", content, len(content) - 10)
    footer = len(content) - 10 - length
    if length <= 0 or footer < 0:
        raise ValueError("the footer is not in the file")
    table = _pointed(content, footer)
    return sum(_batch(content, *block) for field in (2, 3) for block in _blocks(content, table, field))


def _blocks(content: bytes, footer: int, field: int) -> list[tuple[int, int]]:
    """Where the batches of a kind begin, and how long their metadata are."""
    at = _field(content, footer, field)
    if at is None:
        return []
    vector = _pointed(content, at)
    (count,) = struct.unpack_from("<I", content, vector)
    if count > MOST_BATCHES:
        raise ValueError("too many batches")
    return [struct.unpack_from("<qi", content, vector + 4 + 24 * j) for j in range(count)]


def _batch(content: bytes, offset: int, metadata: int) -> int:
    """Bytes that the buffers of one batch unpack to."""
    if offset < 0 or metadata < 0 or offset + metadata > len(content):
        raise ValueError("a batch is not in the file")
    marker = struct.unpack_from("<I", content, offset)[0]
    message = _pointed(content, offset + (8 if marker == CONTINUED else 4))
    kind, header = _field(content, message, 1), _field(content, message, 2)
    if kind is None or header is None or content[kind] not in (RECORDS, DICTIONARY):
        raise ValueError("a message is no batch")
    batch = _pointed(content, header)
    if content[kind] == DICTIONARY:
        data = _field(content, batch, 1)
        if data is None:
            raise ValueError("a dictionary has no values")
        batch = _pointed(content, data)
    buffers, packed = _field(content, batch, 2), _field(content, batch, 3) is not None
    if buffers is None:
        return 0
    vector = _pointed(content, buffers)
    (count,) = struct.unpack_from("<I", content, vector)
    if 16 * count > len(content):
        raise ValueError("too many buffers")
    places = [struct.unpack_from("<qq", content, vector + 4 + 16 * j) for j in range(count)]
    return sum(_buffer(content, offset + metadata + start, size, packed) for start, size in places)


def _buffer(content: bytes, start: int, size: int, packed: bool) -> int:
    if start < 0 or size < 0 or start + size > len(content):
        raise ValueError("a buffer is not in the file")
    if not packed or size == 0:
        return size
    (unpacked,) = struct.unpack_from("<q", content, start)
    if unpacked < -1:
        raise ValueError("a buffer says that it is smaller than nothing")
    return size if unpacked == -1 else int(unpacked)  # −1: stored as it is


def _pointed(content: bytes, at: int) -> int:
    """Where the offset that lies at ``at`` leads to."""
    to = at + struct.unpack_from("<I", content, at)[0]
    if not 0 <= to < len(content):
        raise ValueError("an offset leads out of the file")
    return int(to)


def _field(content: bytes, table: int, number: int) -> int | None:
    """Where a table's field lies; None if it has its default."""
    fields = table - struct.unpack_from("<i", content, table)[0]
    if not 0 <= fields < len(content):
        raise ValueError("an offset leads out of the file")
    (size,) = struct.unpack_from("<H", content, fields)
    if 4 + 2 * number + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", content, fields + 4 + 2 * number)
    return table + int(offset) if offset else None
