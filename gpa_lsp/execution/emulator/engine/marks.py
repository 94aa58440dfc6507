"""What launches have touched of global memory, word by word: :class:`Marks`."""

from enum import IntFlag

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access
from gpa_lsp.execution.emulator.engine.values import Value

WORD_BYTES = 4
CHUNK_BYTES = 512  # allocations begin at multiples of it
_WORD_SHIFT, _CHUNK_SHIFT = WORD_BYTES.bit_length() - 1, CHUNK_BYTES.bit_length() - 1


class Mark(IntFlag):
    """What a launch did to a word; the compiled core has the same bits. The bits above are for those who keep the marks."""

    READ = 1
    # Of a word that is written in part the rest counts as read: what was there before still matters
    WRITTEN = 2


_MARKS = {AccessKind.LOAD: Mark.READ, AccessKind.STORE: Mark.WRITTEN}  # atomic accesses do both


class Marks:
    """Marks of all bytes of a memory.

    Args:
        words: uint8, zeros, one for each :data:`WORD_BYTES`.
        chunks: uint8, zeros, one for each :data:`CHUNK_BYTES`.
    """

    def __init__(self, words: npt.NDArray[np.uint8], chunks: npt.NDArray[np.uint8]) -> None:
        self.words = words
        self.chunks = chunks

    def note(self, access: Access, offset: Value, allowed: Value) -> None:
        """Mark what lanes access.

        Args:
            offset: uint64[n] or one for all, bytes from the beginning of the memory, multiples of what each lane accesses.
            allowed: bool[n]; None for all.
        """
        if allowed is not None:
            if not allowed.any():
                return
            offset = offset[allowed] if np.ndim(offset) else offset
        marks = np.uint8(_MARKS.get(access.kind, Mark.READ | Mark.WRITTEN) | (access.bytes < WORD_BYTES) * Mark.READ)
        places = np.atleast_1d(offset).astype(np.int64)
        for behind in range(0, access.bytes, WORD_BYTES):
            self.words[places + behind >> _WORD_SHIFT] |= marks
        self.chunks[places >> _CHUNK_SHIFT] |= marks

    def mark(self, offset: int, size_bytes: int, marks: Mark) -> None:
        """Mark a stretch of the memory; ``offset`` is in bytes from its beginning."""
        if size_bytes > 0:
            last = offset + size_bytes - 1
            self.words[offset >> _WORD_SHIFT : (last >> _WORD_SHIFT) + 1] |= np.uint8(marks)
            self.chunks[offset >> _CHUNK_SHIFT : (last >> _CHUNK_SHIFT) + 1] |= np.uint8(marks)
