"""The PTX inside a device image, and which of its lines each instruction came from.

``-lineinfo`` keeps the whole PTX in ``.nv_debug_ptx_txt``, its lines separated by NUL; in code that was linked there is one such section per
translation unit, ``.nv_debug_ptx_txt.<number>``. ``.nv_debug_line_sass`` maps instructions to its lines in the encoding of ``.debug_line``;
file 0 stands for the section without a number.
"""

from gpa_lsp.basis.errors import InputError
from gpa_lsp.binary.cubin import PTX_LINE_SECTION, PTX_TEXT_PREFIX
from gpa_lsp.binary.elf import read_elf
from gpa_lsp.binary.line_sequences import LineSection
from gpa_lsp.binary.line_table import decode_rows, empty_line_table, find_function
from gpa_lsp.binary.line_units import LineUnit
from gpa_lsp.binary.model import Cubin, LineTable


def read_ptx_line_table(cubin: Cubin, function: str) -> LineTable:
    """Decode which PTX line each instruction of one function came from.

    Args:
        cubin: the image.
        function: name of one of its functions.

    Returns:
        The rows, by address; empty when the image has none for the function. Each chain has one frame, whose file is the name of the section
        with the text, for :func:`read_ptx_text`, and whose line is 1-based in it.

    Raises:
        InputError: there is no such function, or its table is damaged.
    """
    wanted = find_function(cubin, function)
    section = cubin.once(_open_ptx_lines)
    return empty_line_table() if section is None else decode_rows(section, wanted, _name_ptx_section)


def _open_ptx_lines(cubin: Cubin) -> LineSection | None:
    elf = read_elf(cubin.image, path=cubin.path)
    section = elf.find_section(PTX_LINE_SECTION)
    return None if section is None else LineSection(elf, section)


def read_ptx_text(cubin: Cubin, section: str | None = None) -> tuple[str, ...]:
    """The lines of the PTX in an image.

    Args:
        cubin: the image.
        section: the section's name, as in the frames of :func:`read_ptx_line_table`; None takes the first one there is.

    Returns:
        One string per line, without line ends; empty when there is no PTX.
    """
    elf = read_elf(cubin.image, path=cubin.path)
    for index, name in enumerate(elf.section_names):
        if name == section or (section is None and name.startswith(PTX_TEXT_PREFIX)):
            text = elf.section_bytes(index).decode("utf-8", errors="backslashreplace")
            return tuple(text.removesuffix("\0").split("\0")) if text else ()
    return ()


def _name_ptx_section(unit: LineUnit, number: int) -> str:
    if number == 0:
        return PTX_TEXT_PREFIX
    if number > len(unit.files):
        raise InputError(f"file {number} is not in the table of {len(unit.files)}", place=f"section {PTX_LINE_SECTION}")
    return unit.files[number - 1][0]
