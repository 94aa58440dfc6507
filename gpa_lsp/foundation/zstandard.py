"""Zstandard data, decompressed piece by piece within a bound of memory.

The library is ``compression.zstd`` of Python 3.14, or its backport before; it is imported only for data that needs it.
"""

import sys
from typing import BinaryIO

from gpa_lsp.foundation.errors import MissingToolError

# log2 of the largest window, in bytes, that a frame may ask for
_LARGEST_WINDOW_LOG = 27


class ZstandardReader:
    """``read`` over all frames of a compressed stream.

    Raises:
        MissingToolError: the library is not installed.
    """

    def __init__(self, stream: BinaryIO) -> None:
        try:
            if sys.version_info >= (3, 14):
                from compression import zstd
            else:
                from backports import zstd
        except ImportError as error:
            raise MissingToolError(
                "backports.zstd", needed_for="reading Zstandard data", install="pip install backports.zstd"
            ) from error
        self._error = zstd.ZstdError
        self._file = zstd.ZstdFile(stream, options={zstd.DecompressionParameter.window_log_max: _LARGEST_WINDOW_LOG})

    def read(self, size: int, /) -> bytes:
        """Decompress at most *size* bytes; empty at the end.

        Raises:
            EOFError: the data ends early.
            ValueError: the data is damaged, or needs a larger window.
        """
        try:
            return self._file.read(size)
        except self._error as error:
            raise ValueError(str(error)) from None
