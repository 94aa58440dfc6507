"""Lines on which kernels are defined, so that a lens stands where the reader looks for it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.kernel.names import find_plain_name
from gpa_lsp.report.measured_files import Doubt, MeasuredFile
from gpa_lsp.report.source_paths import fits_lines

if TYPE_CHECKING:
    from gpa_lsp.report.model import KernelReport

# These never try a stretch of text twice: a source comes from anybody, and this is done after every keystroke.
_LINE_END = re.compile(r"\r\n?")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_CUDA_MARK = re.compile(r"\b__global__\b")
_CALL_SHAPE = re.compile(r"[\s\w:&*]*?\b(\w++)\s*+(?:(?><[^;{}()]*>)\s*+)?\(")
_BODY = re.compile(r"[{;]")
_QUALIFIERS = frozenset(
    {"__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__", "__attribute__", "alignas", "__declspec"}
)
_PLAIN_DEFINITION = re.compile(
    r"^[ \t]*(?:async[ \t]+)?(?:def|function|(?:attributes\(\w+\)[ \t]*)?subroutine)[ \t]+(\w+!?)",
    re.MULTILINE | re.IGNORECASE,
)
_MAX_HEADER = 4000  # Characters behind ``__global__`` in which the name and the body must follow


def find_definitions(text: str) -> Mapping[str, tuple[int, ...]]:
    """Functions that can be kernels: name → 1-based lines of their definitions, ascending.

    CUDA C++ ``__global__`` functions with a body (a declaration is none), and the ``def``, ``function`` and ``subroutine`` of Python, Julia
    and Fortran. Found by their look, not by parsing: macros that make kernels are not seen.

    >>> find_definitions("template <int N>\\n__global__ void __launch_bounds__(N)\\nscale(float *x) {\\n}\\n")
    {'scale': (2,)}
    """
    found: dict[str, list[int]] = {}
    text = _LINE_END.sub("\n", text)
    if "__global__" in text:
        plain = _COMMENT.sub(_blank_out, text)
        marks = list(_CUDA_MARK.finditer(plain))
        ends = [*(mark.start() for mark in marks[1:]), len(plain)]
        line, counted = 1, 0
        for mark, end in zip(marks, ends, strict=False):  # without marks there is an end all the same
            line, counted = line + plain.count("\n", counted, mark.start()), mark.start()
            name = _read_kernel_name(plain, mark.end(), min(end, mark.end() + _MAX_HEADER))
            if name is not None:
                found.setdefault(name, []).append(line)
    else:
        line, counted = 1, 0
        for match in _PLAIN_DEFINITION.finditer(text):
            line, counted = line + text.count("\n", counted, match.start(1)), match.start(1)
            found.setdefault(match[1], []).append(line)
    return {name: tuple(sorted(lines)) for name, lines in found.items()}


def _blank_out(comment: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", comment[0])


def _read_kernel_name(text: str, position: int, end: int) -> str | None:
    """The name behind a ``__global__``, before the next one; None when no body follows."""
    while (match := _CALL_SHAPE.match(text, position, end)) is not None:
        behind = _skip_parentheses(text, match.end() - 1, end)
        if behind is None:
            return None
        if match[1] not in _QUALIFIERS:
            body = _BODY.search(text, behind, end)
            return match[1] if body is not None and body[0] == "{" else None
        position = behind
    return None


def _skip_parentheses(text: str, position: int, end: int) -> int | None:
    depth = 0
    for index in range(position, end):
        if text[index] == "(":
            depth += 1
        elif text[index] == ")":
            depth -= 1
            if depth == 0:
                return index + 1
    return None


def choose_anchor(definitions: Mapping[str, tuple[int, ...]], readable_name: str, first_line: int | None) -> int | None:
    """The line for a kernel's lens.

    Args:
        first_line: the topmost line of the kernel's body, as it is numbered now; None when it is gone.

    Returns:
        Of the definitions with the kernel's name the last one above its body, else the only one, else ``first_line``.
    """
    lines = definitions.get(find_plain_name(readable_name), ())
    if first_line is None:
        return lines[0] if len(lines) == 1 else None
    above = [line for line in lines if line <= first_line]
    if above:
        return above[-1]
    return first_line


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
