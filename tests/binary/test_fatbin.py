"""Fat binaries: entries, decompression, and lies."""

import struct
from pathlib import Path

import pytest

from gpa_lsp.code.binary.containers import FATBIN_MAGIC, EntryKind, read_fatbin_entries, unpack_entry
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from tests.binary.seeds import CONTAINERS
from tests.zstandard import zstd

LZ4, ZSTANDARD = 0x2011, 0x8011


def entry(
    payload: bytes, *, kind: int = 2, sm: int = 90, flags: int = 0x11, unpacked: int = 0, stored: int | None = None
) -> bytes:
    padded = payload + bytes(-len(payload) % 8)
    compressed = (len(payload) if stored is None else stored) if flags != 0x11 else 0
    return (
        struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(padded), compressed, 0, 8, 1, sm, 0, 0, flags, 0, unpacked)
        + padded
    )


def block(*entries: bytes) -> bytes:
    content = b"".join(entries)
    return FATBIN_MAGIC + struct.pack("<HHQ", 1, 16, len(content)) + content


def test_entries_of_several_blocks() -> None:
    data = b"?" * 24 + block(entry(b"one", sm=80), entry(b"ptx", kind=1)) + bytes(40) + block(entry(b"two!"))
    found = list(read_fatbin_entries(data))
    assert [(one.kind, one.sm) for one in found] == [(EntryKind.CUBIN, 80), (EntryKind.PTX, 90), (EntryKind.CUBIN, 90)]
    assert [unpack_entry(data, one).rstrip(b"\0") for one in found] == [b"one", b"ptx", b"two!"]


def test_fixture() -> None:
    data = (CONTAINERS / "scale.fatbin").read_bytes()
    found = list(read_fatbin_entries(data))
    assert [(one.kind, one.sm, one.is_lz4, one.is_zstandard) for one in found] == [
        (EntryKind.CUBIN, 80, False, False),
        (EntryKind.PTX, 80, False, False),
        (EntryKind.CUBIN, 90, False, False),
    ] or sorted((one.kind, one.sm) for one in found) == [(1, 80), (2, 80), (2, 90)]
    for one in found:
        start = unpack_entry(data, one)[:4]
        assert (start == b"\x7fELF") == (one.kind == EntryKind.CUBIN)


def test_zstandard() -> None:
    text = b"spam " * 1000
    data = block(entry(zstd.compress(text), flags=ZSTANDARD, unpacked=len(text)))
    (found,) = read_fatbin_entries(data)
    assert found.is_zstandard
    assert unpack_entry(data, found) == text


@pytest.mark.parametrize("claimed", [4999, 5001, 1 << 40], ids=["less", "more", "far more"])
def test_zstandard_of_another_size(claimed: int) -> None:
    data = block(entry(zstd.compress(b"spam " * 1000), flags=ZSTANDARD, unpacked=claimed))
    (found,) = read_fatbin_entries(data)
    with pytest.raises(InputError, match="decompress"):
        unpack_entry(data, found)


def test_no_zstandard_after_all() -> None:
    data = block(entry(b"not compressed", flags=ZSTANDARD, unpacked=100))
    (found,) = read_fatbin_entries(data)
    with pytest.raises(InputError, match="does not decompress") as caught:
        unpack_entry(data, found, path=Path("a.fatbin"))
    assert str(caught.value).startswith("a.fatbin: fat binary at offset 0x50: ")


def test_lz4_is_left_to_cuobjdump() -> None:
    data = block(entry(b"whatever", flags=LZ4, unpacked=100))
    (found,) = read_fatbin_entries(data)
    assert found.is_lz4
    with pytest.raises(UnsupportedInputError, match="LZ4"):
        unpack_entry(data, found)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (FATBIN_MAGIC + b"\1\0\x10\0", "header is cut off"),
        (block(entry(b"x"))[:-4], "more than there are"),
        (FATBIN_MAGIC + struct.pack("<HHQ", 1, 16, (1 << 64) - 1), "more than there are"),
        (block(entry(b"x") + entry(b"y")[:-8]), "longer than its block"),
        (block(entry(b"x", flags=ZSTANDARD, stored=1 << 30)), "longer than its block"),
        (block(bytes(64)), "longer than its block"),
    ],
)
def test_lies(data: bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        list(read_fatbin_entries(data))


def test_nothing() -> None:
    assert list(read_fatbin_entries(b"")) == []
    assert list(read_fatbin_entries(b"no magic here")) == []
