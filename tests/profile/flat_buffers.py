"""Writes files of PC samples as CUPTI's library does, for the tests: tables first, with their lists of offsets before them."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpa_lsp.profile.readers.pc_sampling_dump import IDENTIFIER, Position

REASONS = {
    5: "smsp__pcsamp_sample_count",
    7: "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
    9: "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
    11: "smsp__pcsamp_warps_issue_stalled_selected",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pc:
    """A record of one instruction."""

    crc: int
    offset: int
    index: int
    name: str
    reasons: tuple[tuple[int, int], ...]
    correlation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A buffer of a file."""

    total: int
    records: tuple[Pc, ...]
    dropped: int = 0
    foreign: int = 0


class _Writer:
    """Writes from the end to the beginning, since offsets lead forward: a place is its distance from the end."""

    def __init__(self) -> None:
        self.content = b""

    def put(self, data: bytes, links: Mapping[int, int] = {}) -> int:  # never changed
        """Bytes; links are places, by where in the bytes they stand."""
        self.content = data + bytes(-(len(data) + len(self.content)) % 8) + self.content
        start = len(self.content)
        patched = bytearray(self.content)
        for at, place in links.items():
            struct.pack_into("<I", patched, at, start - at - place)
        self.content = bytes(patched)
        return start

    def put_text(self, text: str) -> int:
        return self.put(struct.pack("<I", len(text.encode())) + text.encode() + b"\0")

    def put_links(self, places: Sequence[int]) -> int:
        links = {4 + 4 * number: place for number, place in enumerate(places)}
        return self.put(struct.pack("<I", len(places)) + bytes(4 * len(places)), links)

    def put_table(self, fields: Mapping[int, tuple[str, int]]) -> int:
        """Fields by position; the form ``link`` is a place of something."""
        body, offsets, targets = b"", {}, {}
        for field, (form, value) in fields.items():
            size = 4 if form == "link" else struct.calcsize(form)
            body += bytes(-(len(body) + 4) % size)
            offsets[field] = len(body) + 4
            if form == "link":
                targets[len(body) + 4] = value
            body += bytes(4) if form == "link" else struct.pack(form, value)
        count = max(offsets, default=-1) + 1
        listed = struct.pack(
            f"<HH{count}H", 4 + 2 * count, 4 + len(body), *(offsets.get(one, 0) for one in range(count))
        )
        listed += bytes(-len(listed) % 8)
        links = {len(listed) + at: place for at, place in targets.items()}
        return self.put(listed + struct.pack("<i", len(listed)) + body, links) - len(listed)

    def finish(self, root: int) -> bytes:
        head = struct.pack("<I4s", 8 + len(self.content) - root, IDENTIFIER)
        return head + self.content


def write_buffer(buffer: Buffer) -> bytes:
    """The FlatBuffer of a buffer."""
    writer = _Writer()
    indices = writer.put(struct.pack(f"<I{len(REASONS)}I", len(REASONS), *REASONS))
    names = writer.put_links([writer.put_text(name) for name in REASONS.values()])
    settings = writer.put_table(
        {Position.PERIOD: ("<I", 11), Position.ALL_INDICES: ("link", indices), Position.ALL_NAMES: ("link", names)}
    )
    holder = writer.put_table({Position.SETTINGS: ("link", settings)})
    records = writer.put_links([_write_record(writer, record) for record in buffer.records])
    root = writer.put_table(
        {
            Position.HOLDER: ("link", holder),
            Position.TOTAL_SAMPLES: ("<Q", buffer.total),
            Position.DROPPED_SAMPLES: ("<Q", buffer.dropped),
            Position.RECORDS: ("link", records),
            Position.FOREIGN_SAMPLES: ("<Q", buffer.foreign),
        }
    )
    return writer.finish(root)


def _write_record(writer: _Writer, record: Pc) -> int:
    numbers = [number for pair in record.reasons for number in pair]
    reasons = writer.put(struct.pack(f"<I{len(numbers)}I", len(record.reasons), *numbers))
    name = writer.put_text(record.name)
    return writer.put_table(
        {
            Position.CUBIN: ("<Q", record.crc),
            Position.OFFSET: ("<Q", record.offset),
            Position.FUNCTION_NAME: ("link", name),
            Position.FUNCTION_INDEX: ("<I", record.index),
            Position.REASONS: ("link", reasons),
            Position.CORRELATION: ("<I", record.correlation),
        }
    )


def write_dump(buffers: Sequence[Buffer]) -> bytes:
    """A file."""
    parts = [struct.pack("<II", 1, len(buffers))]
    for buffer in buffers:
        content = write_buffer(buffer)
        parts += [struct.pack("<4Q", len(buffer.records), len(REASONS), len(REASONS), len(content)), content]
    return b"".join(parts)
