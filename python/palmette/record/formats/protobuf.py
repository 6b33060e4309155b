"""Protocol buffers' wire format, as far as it is needed to write messages: fields of a number and a wire type."""

from __future__ import annotations

VARINT, FIXED64, LENGTH = 0, 1, 2
"""Wire types."""


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first. `value` is from 0 to 2^64 - 1."""
    out = b""
    while value > 0x3FFF:
        out += _TWICE[value & 0x3FFF]
        value >>= 14
    return out + _LAST[value]


def _plain(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80, value >> 7])


_LAST = tuple(_plain(value) for value in range(0x4000))
"""Numbers of up to 14 bits: nearly all but times."""
_TWICE = tuple(bytes([value & 0x7F | 0x80, value >> 7 | 0x80]) for value in range(0x4000))
"""14 bits that more follow."""


def number(field: int, value: int) -> bytes:
    """An integer, an enumerator or a boolean. Negative ones take ten bytes, as int32 and int64 do."""
    return varint(field << 3 | VARINT) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def fixed64(field: int, value: int) -> bytes:
    """An integer in eight bytes."""
    return varint(field << 3 | FIXED64) + value.to_bytes(8, "little")


def data(field: int, value: bytes) -> bytes:
    """Bytes, or a message."""
    return varint(field << 3 | LENGTH) + varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    """A string."""
    return data(field, value.encode("utf-8", "replace"))
