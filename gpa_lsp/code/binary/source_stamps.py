"""What the sources of a device image looked like when they were compiled.

nvcc writes the length and the modification time of each source into the line table, so that the text an editor shows can be told from the one
that was compiled without having a copy of it. NVRTC, Triton and Julia write zeros.
"""

from collections.abc import Mapping

from gpa_lsp.code.binary.cubin import LINE_SECTION
from gpa_lsp.code.binary.elf import read_elf
from gpa_lsp.code.binary.line_units import read_units
from gpa_lsp.code.binary.model import Cubin, SourceStamp
from gpa_lsp.foundation.locations import join_source_path


def read_source_stamps(cubin: Cubin) -> Mapping[str, SourceStamp]:
    """The stamps of an image's sources.

    Returns:
        Path as in the frames of the line table → stamp. Files without a length are left out, and so are those that two units of the image
        saw differently.

    Raises:
        InputError: the line table is damaged.
    """
    elf = read_elf(cubin.image, path=cubin.path)
    section = elf.find_section(LINE_SECTION)
    if section is None:
        return {}
    found: dict[str, set[tuple[int, int]]] = {}
    for unit in read_units(elf.section_bytes(section), path=cubin.path, place=elf.place(section)):
        for (name, directory), (modified, size) in zip(unit.files, unit.stamps, strict=True):
            if size:
                folder = unit.directories[directory - 1] if 0 < directory <= len(unit.directories) else ""
                found.setdefault(join_source_path(folder, name), set()).add((modified, size))
    return {
        path: SourceStamp(size_bytes=size, modified_unix_s=modified or None)
        for path, stamps in found.items()
        if len(stamps) == 1
        for modified, size in stamps
    }
