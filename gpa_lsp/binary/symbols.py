"""The symbol table of a device image."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpa_lsp.binary.elf import FUNCTION_SYMBOL, ElfImage
from gpa_lsp.binary.string_table import StringTable

_SYMBOL_TYPE_MASK = 0xF
_ENTRY_FLAG = 0x10
"""Bit of ``st_other`` that marks a ``__global__`` function (STO_CUDA_ENTRY)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbols:
    """The symbol table of an image with its names.

    Attributes:
        table: structured array of :data:`~gpa_lsp.binary.elf.SYMBOL_DTYPE`.
        strings: what the ``name`` column points into.
    """

    table: npt.NDArray[np.void]
    strings: StringTable

    @classmethod
    def of(cls, elf: ElfImage) -> "Symbols":
        """The symbols of an image."""
        return cls(table=elf.read_symbols(), strings=elf.symbol_names())

    def name(self, index: int) -> str:
        """The name of a symbol; the index must be valid."""
        return self.strings.read(int(self.table[index]["name"]))

    def is_function(self, index: int) -> bool:
        """Whether there is such a symbol, and it is a function."""
        return 0 < index < len(self.table) and int(self.table[index]["info"]) & _SYMBOL_TYPE_MASK == FUNCTION_SYMBOL

    def is_entry(self, index: int) -> bool:
        """Whether a symbol is a kernel's; the index must be valid."""
        return bool(int(self.table[index]["other"]) & _ENTRY_FLAG)

    def functions_by_section(self) -> dict[int, list[int]]:
        """Section index → indexes of the function symbols defined in it, ascending."""
        chosen = np.flatnonzero((self.table["info"] & _SYMBOL_TYPE_MASK) == FUNCTION_SYMBOL)
        grouped: dict[int, list[int]] = defaultdict(list)
        for index, section in zip(chosen.tolist(), self.table["section"][chosen].tolist(), strict=True):
            grouped[section].append(index)
        return grouped
