"""Marks of the words of global memory that launches have touched: :class:`Marks`."""

from enum import IntFlag

import numpy as np
import numpy.typing as npt

WORD_BYTES = 4
CHUNK_BYTES = 512  # allocations begin at multiples of it
_WORD_SHIFT, _CHUNK_SHIFT = WORD_BYTES.bit_length() - 1, CHUNK_BYTES.bit_length() - 1


class Mark(IntFlag):
    """Use of a word by a launch; the compiled core has the same bits. Higher bits are free for other uses."""

    READ = 1
    # A word written in part counts as read, too: its other bytes still matter
    WRITTEN = 2


class Marks:
    """Marks of all bytes of a memory.

    Args:
        words: uint8, zeros, one for each :data:`WORD_BYTES`.
        chunks: uint8, zeros, one for each :data:`CHUNK_BYTES`.
    """

    def __init__(self, words: npt.NDArray[np.uint8], chunks: npt.NDArray[np.uint8]) -> None:
        self.words = words
        self.chunks = chunks

    def mark(self, offset: int, size_bytes: int, marks: Mark) -> None:
        """Mark a stretch of the memory; ``offset`` is in bytes from its beginning."""
        if size_bytes > 0:
            last = offset + size_bytes - 1
            self.words[offset >> _WORD_SHIFT : (last >> _WORD_SHIFT) + 1] |= np.uint8(marks)
            self.chunks[offset >> _CHUNK_SHIFT : (last >> _CHUNK_SHIFT) + 1] |= np.uint8(marks)
