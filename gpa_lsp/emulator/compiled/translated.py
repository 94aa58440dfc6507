"""Kernels that run for long, written in C while the interpreter executes them: :class:`Translation`."""

import ctypes
import hashlib
import logging
import threading

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.errors import GpaError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.compiled.model import list_codes
from gpa_lsp.emulator.compiled.pieces import Piece, find_pieces, list_read_by_python
from gpa_lsp.emulator.compiled.program import CompiledKernel
from gpa_lsp.emulator.compiled.translation import name_piece, translate
from gpa_lsp.native.shared_library import may_translate, open_source

_LOG = logging.getLogger(__name__)

HOT_WARP_INSTRUCTIONS = 1 << 25
"""A kernel is translated when the interpreter has executed so much of it: about as long as a C compiler takes."""
_OPERATIONS_A_SECOND = 64
"""That a C compiler does; kernels of more must have been executed for longer."""
_MOST_OPERATIONS = 2000
"""Kernels of more are left to the interpreter: to compile them takes a minute."""
_MOST_TRANSLATIONS = 64
_MOST_LIBRARIES = 1024
"""Of a process: they stay loaded, for whoever executes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceTable:
    """Pieces, for the core.

    Attributes:
        functions: uint64 by operation, the address of the piece that begins with it; 0 for none.
        ends: int64 by operation, the first one behind that piece.
        library: that has them.
    """

    functions: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.int64]
    library: ctypes.CDLL


class Translation:
    """One kernel's way into C. Launches of the same kernel share it, from whichever thread.

    Args:
        checks_shared: shared memory is watched.
    """

    def __init__(self, *, checks_shared: bool) -> None:
        self._checks_shared = checks_shared
        self._executed = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.table: PieceTable | None = None

    def count(self, kernel: CompiledKernel, warp_instructions: int, *, is_seen: bool) -> None:
        """Note what was executed; what is executed for long is translated, beside it.

        Args:
            kernel: it is for.
            warp_instructions: of it, since the last call.
            is_seen: these operations have been executed for long enough to know where their accesses go.
        """
        with self._lock:
            self._executed += warp_instructions
            enough = HOT_WARP_INSTRUCTIONS * max(1, len(kernel.operations) // _OPERATIONS_A_SECOND)
            if self._thread is None and is_seen and self._executed >= enough:
                pieces = self._find_pieces(kernel)
                self._thread = threading.Thread(target=self._make, args=(pieces, len(kernel.operations)), daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Until it is there, where it was begun."""
        if self._thread is not None:
            self._thread.join()

    def _find_pieces(self, kernel: CompiledKernel) -> list[Piece]:
        if len(kernel.operations) > _MOST_OPERATIONS:
            return []
        codes = list_codes(kernel.core)
        return find_pieces(kernel, list(codes), checks_shared=self._checks_shared)

    def _make(self, pieces: list[Piece], operations: int) -> None:
        if not pieces:
            return
        try:
            library = open_source(translate(pieces), needed_for="kernels that run for long")
        except (GpaError, OSError) as error:
            _LOG.info("a kernel stays with the interpreter: %s", error)
            return
        functions, ends = np.zeros(operations, np.uint64), np.zeros(operations, np.int64)
        for piece in pieces:
            functions[piece.first] = ctypes.cast(getattr(library, name_piece(piece)), ctypes.c_void_p).value or 0
            ends[piece.first] = piece.end
        self.table = PieceTable(functions=functions, ends=ends, library=library)


class Translations:
    """Those of this process, by what they are of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[bytes, Translation] = {}
        self._loaded = 0

    def find(self, kernel: CompiledKernel, *, checks_shared: bool) -> Translation | None:
        """The one of a kernel; None where it stays with the interpreter."""
        if not may_translate():
            return None
        operations = kernel.operations.copy()
        operations["region"] = operations["is_known"] = 0
        digest = hashlib.sha256(operations.tobytes() + kernel.table.tobytes())
        digest.update(f"{kernel.frames.frame_bytes} {checks_shared} {list_read_by_python(kernel)}".encode())
        with self._lock:
            if len(self._known) >= _MOST_TRANSLATIONS:
                self._loaded += sum(one.table is not None for one in self._known.values())
                self._known.clear()
            if self._loaded >= _MOST_LIBRARIES:
                return None
            return self._known.setdefault(digest.digest(), Translation(checks_shared=checks_shared))

    def wait(self) -> int:
        """Until all that were begun are there; how many are."""
        with self._lock:
            known = list(self._known.values())
        for one in known:
            one.wait()
        return sum(one.table is not None for one in known)


TRANSLATIONS = Translations()
"""Translations of kernels, which others of the same operations share."""
