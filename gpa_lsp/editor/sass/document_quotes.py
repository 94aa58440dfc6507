"""The source lines between the instructions of a SASS document.

Compilers mix the instructions of neighbouring lines; quoting a line wherever it changes would double the document. So a line is quoted where it
begins and was not quoted on the screen above; every instruction carries its line's number.
"""

from collections.abc import Callable, Mapping

import numpy as np

from gpa_lsp.basis.locations import Frame, InlineChain, shorten_paths
from gpa_lsp.basis.visible_text import make_one_line
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.render.layout import count_cells, cut
from gpa_lsp.report.model import InstructionColumns

_ROWS_REMEMBERED = 32
_LINE_CELLS = 140
_LEAST_CELLS = 48
_MOST_NAME_CELLS = 26
_MOST_FILE_CELLS = 48
_MOST_TEXT_CELLS = 40
"""Of a line that was inlined: the reader wants to know into what."""

_ELLIPSIS = " in …"


def find_quotes(columns: InstructionColumns, write: Callable[[int], str]) -> Mapping[int, str]:
    """Row → the quote above it.

    Args:
        columns: the instructions.
        write: chain → its quote.
    """
    chains = columns.chain_index
    if not len(chains):
        return {}
    is_start = np.ones(len(chains), dtype=np.bool_)
    is_start[1:] = (chains[1:] != chains[:-1]) | (columns.function_index[1:] != columns.function_index[:-1])
    rows = np.flatnonzero(is_start & (chains >= 0))
    quoted: dict[str, int] = {}
    found: dict[int, str] = {}
    for row, chain in zip(rows.tolist(), chains[rows].tolist(), strict=True):
        quote = write(chain)
        if row - quoted.get(quote, -_ROWS_REMEMBERED) >= _ROWS_REMEMBERED:
            quoted[quote] = row
            found[row] = quote
    return found


class QuoteWriter:
    """Writes quotes: place, what it was inlined into, text.

    Args:
        shown: the kernel; its measured sources are quoted, as far as they are known.
        column: where quotes begin.
    """

    def __init__(self, shown: VisibleKernel, column: int) -> None:
        self._files = shown.profile.files
        self._chains = shown.kernel.report.instructions.chains
        self._cells = max(_LEAST_CELLS, _LINE_CELLS - column)
        self._indent = " " * column
        names = shorten_paths(dict.fromkeys(frame.file for chain in self._chains for frame in chain))
        self._names = {file: cut(make_one_line(name), _MOST_NAME_CELLS, keeps_end=True) for file, name in names.items()}
        self._written: dict[int, str] = {}

    def write(self, chain: int) -> str:
        """The quote of a chain as a line, e.g. ``// m.h:33 in k.cu:212 | return a * b;``."""
        known = self._written.get(chain)
        if known is None:
            known = self._written[chain] = self._indent + self._write(self._chains[chain])
        return known

    def name_lines(self, file: str, first: int, last: int) -> str:
        """A stretch of lines, by the shortest end of the path that says which file it is."""
        name = cut(self._names.get(file) or make_one_line(file), _MOST_FILE_CELLS, keeps_end=True)
        return f"{name}:{first}-{last}" if last > first else f"{name}:{first}"

    def _name(self, frame: Frame) -> str:
        name = cut(self._names[frame.file], _MOST_NAME_CELLS, keeps_end=True)
        return f"{name}:{frame.line}" if frame.line > 0 else name

    def _write(self, chain: InlineChain) -> str:
        head, text = f"// {self._name(chain[0])}", self._read(chain[0])
        if len(chain) > 1:
            text = cut(text, _MOST_TEXT_CELLS)
        tail = f" | {text}" if text else ""
        room = self._cells - count_cells(head) - count_cells(tail)
        for depth, frame in enumerate(chain[1:], start=1):
            step = f" in {self._name(frame)}"
            is_last = depth == len(chain) - 1
            if count_cells(step) + (0 if is_last else len(_ELLIPSIS)) > room:
                head += _ELLIPSIS
                break
            head += step
            room -= count_cells(step)
        return cut(head + tail, self._cells + len(_ELLIPSIS))

    def _read(self, frame: Frame) -> str:
        file = self._files.get(frame.file)
        if file is None or file.lines is None or not 1 <= frame.line <= len(file.lines):
            return ""
        return make_one_line(file.lines[frame.line - 1])
