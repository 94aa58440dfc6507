"""How instructions are placed for a reader: the line that can be opened, the chain around it in short, or an offset."""

from collections.abc import Sequence
from functools import cached_property

from gpa_lsp.document.layout import ELLIPSIS
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.locations import Frame, shorten_paths, write_place
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.report.model import KernelReport


class InstructionPlaces:
    """Places of one kernel's instructions.

    Args:
        kernel: the kernel.
        places: how sources are shown.
    """

    def __init__(self, kernel: KernelReport, places: PlaceNames) -> None:
        self._kernel = kernel
        self._places = places

    def choose_frame(self, row: int) -> Frame | None:
        """The frame by which an instruction is named: of the user's own the innermost that is here; None without lines."""
        columns = self._kernel.instructions
        chain = int(columns.chain_index[row])
        if chain < 0:
            return None
        return choose_frame(columns.chains[chain], self._is_here)

    def show(self, row: int) -> Sequence[str]:
        """Where an instruction comes from, from the inside out: ``path:line`` for the frame that can be opened, short names for the others.

        Of a long chain the ends and the frame that can be opened are shown. Without lines it is the offset, with the function's name
        where it is not the kernel's own.
        """
        own = self.choose_frame(row)
        if own is None:
            return (self.show_offset(row),)
        chain = self._kernel.instructions.chains[self._kernel.instructions.chain_index[row]]
        kept = sorted({0, chain.index(own), len(chain) - 1})
        parts: list[str] = []
        for position, index in enumerate(kept):
            if position and index > kept[position - 1] + 1:
                parts.append(ELLIPSIS)
            parts.append(self._show_frame(chain[index], is_own=index == chain.index(own)))
        return tuple(parts)

    def show_offset(self, row: int) -> str:
        """The offset of an instruction, ``0x40``, or ``scale+0x40`` in another function than the kernel's own."""
        columns = self._kernel.instructions
        function = columns.functions[columns.function_index[row]]
        offset = f"0x{int(columns.pc_offsets[row]):x}"
        return offset if function == self._kernel.mangled_name else f"{shorten_name(demangle(function))}+{offset}"

    def name_file(self, file: str) -> str:
        """A file as the user has it; by as little of its path as tells it from the kernel's others where it is not here."""
        is_here = self._places.locate(self._kernel, file) is not None
        return self._places.show_file(self._kernel, file) if is_here else self._short_names.get(file, file)

    def _show_frame(self, frame: Frame, *, is_own: bool) -> str:
        if is_own and self._is_here(frame.file):
            return self._places.show_line(self._kernel, frame.file, frame.line)
        name = self._short_names[frame.file]
        return write_place(name, frame.line)

    def _is_here(self, file: str) -> bool:
        return self._places.locate(self._kernel, file) is not None

    @cached_property
    def _short_names(self) -> dict[str, str]:
        return shorten_paths({frame.file for chain in self._kernel.instructions.chains for frame in chain})
