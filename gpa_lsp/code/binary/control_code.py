"""The scheduling bits of each instruction, decoded for a whole section at once.

Source: GPA, Table I, for the fields: stall cycles, yield, write and read barrier, wait mask.
"""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, ControlCodes

NO_BARRIER = 7  # The value of :attr:`ControlCodes.write_barrier` and ``read_barrier`` that means none

_FIRST_BIT = 105 - 64
_STALL, _YIELD, _WRITE, _READ, _WAIT, _REUSE = 0, 4, 5, 8, 11, 17  # Offsets of the fields from bit 105


def split_words(code: bytes) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The low and the high 64 bits of each instruction, uint64[n] each; a ragged tail is left out."""
    whole = len(code) - len(code) % INSTRUCTION_BYTES
    words = np.frombuffer(code, dtype="<u8", count=whole // 8).reshape(-1, 2)
    return words[:, 0], words[:, 1]


def decode_control_codes(code: bytes) -> ControlCodes:
    """Decode bits 105..125 of every instruction of a section.

    Source: bit positions as in :class:`~gpa_lsp.code.binary.model.ControlCodes`; the same from sm_70 to sm_120.

    >>> word = (0x7F << 17 | 0b101 << 11 | 7 << 8 | 2 << 5 | 1 << 4 | 9) << 105 & (1 << 126) - 1
    >>> control = decode_control_codes(word.to_bytes(16, "little"))
    >>> int(control.stall_cycles[0]), int(control.write_barrier[0]), int(control.read_barrier[0]), int(control.wait_mask[0])
    (9, 2, 7, 5)
    """
    _, high = split_words(code)
    bits = (high >> np.uint64(_FIRST_BIT)).astype(np.uint32)

    def field(offset: int, mask: int) -> npt.NDArray[np.uint8]:
        return (bits >> np.uint32(offset) & np.uint32(mask)).astype(np.uint8)

    return ControlCodes(
        stall_cycles=field(_STALL, 15),
        yield_flag=field(_YIELD, 1) ^ np.uint8(1),
        write_barrier=field(_WRITE, 7),
        read_barrier=field(_READ, 7),
        wait_mask=field(_WAIT, 63),
        reuse=field(_REUSE, 15),
    )
