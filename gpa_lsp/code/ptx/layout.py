"""Where variables lie: offsets in the order of their declarations."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxVariable
from gpa_lsp.code.ptx.scalar_types import align_up


def lay_out(variables: Iterable[PtxVariable], start: int = 0) -> tuple[tuple[PtxVariable, ...], int]:
    """Give each its offset, aligned as declared."""
    placed = []
    offset = start
    for variable in variables:
        offset = align_up(offset, variable.alignment_bytes)
        placed.append(replace(variable, offset_bytes=offset) if offset else variable)
        offset += variable.size_bytes
    return tuple(placed), offset


def lay_out_shared(variables: Sequence[PtxVariable]) -> tuple[PtxVariable, ...]:
    """Shared memory of a kernel: what has a size in order, then what is dynamic; all dynamic arrays begin at the same place.

    >>> from gpa_lsp.code.ptx.declarations import read_variables
    >>> texts = [".extern .shared .align 16 .b8 all[]", ".shared .b8 flag", ".shared .f32 tile[4]"]
    >>> [(one.name, one.offset_bytes) for one in lay_out_shared([read_variables(text)[0] for text in texts])]
    [('flag', 0), ('tile', 4), ('all', 32)]
    """
    dynamic = [variable for variable in variables if _is_dynamic(variable)]
    placed, end = lay_out(variable for variable in variables if not _is_dynamic(variable))
    start = align_up(end, max((variable.alignment_bytes for variable in dynamic), default=1))
    return (*placed, *(replace(variable, offset_bytes=start) for variable in dynamic))


def _is_dynamic(variable: PtxVariable) -> bool:
    return variable.is_extern and variable.count == 0
