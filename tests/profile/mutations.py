"""Ways to break a file: cuts, flipped bits, lying length fields, splices."""

import struct

from hypothesis import strategies as st

_LENGTHS = st.one_of(
    st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF]),
    st.integers(0, 0xFFFFFFFF),
)
_MAX_EDITS = 4


@st.composite
def mutate(draw: st.DrawFn, seed: bytes, length_fields: tuple[int, ...] = ()) -> bytes:
    """The seed with one to four edits."""
    data = bytearray(seed)
    for _ in range(draw(st.integers(1, _MAX_EDITS))):
        if not data:
            break
        kind = draw(st.sampled_from(["cut", "flip", "byte", "length", "delete", "repeat", "insert", "zero"]))
        start = draw(st.integers(0, len(data) - 1))
        end = min(len(data), start + draw(st.integers(1, 64)))
        if kind == "cut":
            del data[start:]
        elif kind == "flip":
            data[start] ^= 1 << draw(st.integers(0, 7))
        elif kind == "byte":
            data[start] = draw(st.integers(0, 255))
        elif kind == "length":
            offset = draw(st.sampled_from(length_fields)) if length_fields else start
            data[offset : offset + 4] = struct.pack("<I", draw(_LENGTHS))
        elif kind == "delete":
            del data[start:end]
        elif kind == "repeat":
            data[start:start] = data[start:end] * draw(st.integers(1, 50))
        elif kind == "insert":
            data[start:start] = draw(st.binary(min_size=1, max_size=40))
        else:
            data[start:end] = bytes(end - start)
    return bytes(data)


def find_length_fields(report: bytes) -> tuple[int, ...]:
    """Offsets of every u32 size in a sound report: of the file header, of block headers and of entries."""
    from gpa_lsp.profile.ncu.schema import MESSAGES

    fields = [4]
    offset = 8 + struct.unpack_from("<I", report, 4)[0]
    while offset < len(report):
        fields.append(offset)
        size = struct.unpack_from("<I", report, offset)[0]
        header = MESSAGES["BlockHeader"].FromString(report[offset + 4 : offset + 4 + size])
        offset += 4 + size
        end = offset + header.payload_bytes
        while offset < end:
            fields.append(offset)
            offset += 4 + struct.unpack_from("<I", report, offset)[0]
    return tuple(fields)
