"""Whether a text can be what a kernel was measured on, where nobody can tell that it is: lines exist, carry code, and stand in their functions."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.editor.lines.anchors import find_definitions
from gpa_lsp.kernel.names import find_plain_name
from gpa_lsp.report.measured_files import Doubt, MeasuredFile
from gpa_lsp.report.source_paths import fits_lines

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    from gpa_lsp.report.model import KernelReport


def judge_fit(files: Iterable[MeasuredFile], kernels: Sequence["KernelReport"]) -> tuple[MeasuredFile, ...]:
    """The same files, with what was found out of those that may not be what was measured."""
    return tuple(
        file
        if file.is_verified or file.lines is None or file.doubt is Doubt.OTHER_CODE  # judged where it was found
        else replace(file, fits=_fits(file.lines, file, kernels))
        for file in files
    )


def _fits(lines: Sequence[str], file: MeasuredFile, kernels: Sequence["KernelReport"]) -> bool:
    from gpa_lsp.report.kernel_lines import find_body

    definitions = find_definitions("\n".join(lines))
    measured: set[int] = set()
    for kernel in kernels:
        measured.update(row.line for row in kernel.lines if row.file == file.compiled_path and row.line)
        body = find_body(kernel)
        is_home = body is not None and body[0] == file.compiled_path
        if body is not None and is_home and not stands_in(body[1], find_plain_name(kernel.name), definitions):
            return False
    return fits_lines(lines, measured)


def stands_in(body: Sequence[int], name: str, definitions: Mapping[str, Sequence[int]]) -> bool:
    """Whether the lines of a kernel are below a definition of that name, and below no other one; True where the text defines no such name.

    >>> found = {"scale": (2,), "sum": (12,)}
    >>> stands_in((4, 5), "scale", found), stands_in((14, 15), "scale", found), stands_in((4, 5), "made_by_a_macro", found)
    (True, False, True)
    """
    if not definitions.get(name):
        return True
    middle = median_low(body)
    above = [(line, other) for other, lines in definitions.items() for line in lines if line <= middle]
    return bool(above) and max(above)[1] == name
