"""Current places of measured lines in the document that the editor holds; and lines on which kernels are defined, where the reader looks for a
lens.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count
from statistics import median_low
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.editor.settings import UnverifiedChoice
from gpa_lsp.foundation.files import Stamp
from gpa_lsp.kernel.names import find_plain_name
from gpa_lsp.report.line_map import LineMap, map_lines, split_lines
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


def may_show_unverified(file: MeasuredFile, choice: UnverifiedChoice) -> bool:
    """Whether lines are shown of a file that may not be what was measured."""
    return choice is UnverifiedChoice.ALL or (choice is UnverifiedChoice.FITTING and file.fits)


class LineFinder:
    """Maps measured lines to the document's, comparing each distinct measured text once.

    Args:
        lines: of the document as it is now.
        saved: what the document held when it was like the file on disk, latest last, by the file's stamp then; stands in for a measured text we
            have no copy of, as long as it is of the same state of the file.
        unverified: which files that may not be what was measured are taken for it.
    """

    def __init__(
        self,
        lines: Sequence[str],
        *,
        saved: Mapping[Stamp | None, str] | None = None,
        unverified: UnverifiedChoice = UnverifiedChoice.FITTING,
    ) -> None:
        self._lines = lines
        self._saved = saved or {}
        self._saved_lines: dict[str, tuple[str, ...]] = {}
        self._unverified = unverified
        self._maps_back: dict[int, dict[int, int]] = {}
        self._maps: dict[int, tuple[MeasuredFile, LineMap]] = {}
        self._maps_by_text: dict[tuple[str, ...], LineMap] = {}

    def find(self, file: MeasuredFile, measured_line: int) -> int | None:
        """The current line of a measured one, both 1-based; None when it is gone, or nobody can tell where it is."""
        line_map = self.map(file) if self._may_show(file) else None
        return None if line_map is None else line_map.find_current(measured_line)

    @cached_property
    def definitions(self) -> Mapping[str, tuple[int, ...]]:
        """Functions of the document that can be kernels: name → 1-based lines of their definitions, ascending."""
        return find_definitions("\n".join(self._lines))

    def find_kernel(self, readable_name: str, file: MeasuredFile, body: Iterable[int | None] = ()) -> int | None:
        """Find the current line of a kernel's definition, see :func:`choose_anchor`; None where that cannot be told.

        Args:
            file: the text that was measured.
            body: lines of it in which the kernel has code, the topmost first.
        """
        current = (self.find(file, line) for line in body if line is not None)
        first_line = next((line for line in current if line is not None), None)
        return choose_anchor(self.definitions, readable_name, first_line)

    def knows(self, file: MeasuredFile) -> bool:
        """Whether lines of a file are found at all: its text is known, and is what was measured, or the user wants them all the same."""
        return self._may_show(file) and self.map(file) is not None

    def _may_show(self, file: MeasuredFile) -> bool:
        return file.is_verified or may_show_unverified(file, self._unverified)

    def map_back(self, file: MeasuredFile) -> Mapping[int, int]:
        """Current line → measured line, both 1-based, of all lines :meth:`find` finds."""
        line_map = self.map(file) if self._may_show(file) else None
        if line_map is None:
            return {}
        known = self._maps_back.get(id(line_map))
        if known is None:
            known = self._maps_back[id(line_map)] = dict(zip(line_map.current_lines, count(1), strict=False))
            known.pop(0, None)  # lines that are gone
        return known

    def is_edited(self, file: MeasuredFile) -> bool:
        """The document is not what was measured."""
        line_map = self.map(file)
        return line_map is not None and not line_map.unchanged

    def map(self, file: MeasuredFile) -> LineMap | None:
        """All lines of a measured file; None when its text is not known.

        By identity first: hashing a text for each of its lines would be quadratic. The file is kept, so that its identity stays its own.
        """
        known = self._maps.get(id(file))
        if known is not None:
            return known[1]
        text = file.lines if file.lines is not None else self._split_saved(file)
        if text is None:
            return None
        found = self._maps_by_text.get(text) or map_lines(text, self._lines)
        self._maps[id(file)] = (file, found)
        self._maps_by_text[text] = found
        return found

    def _split_saved(self, file: MeasuredFile) -> tuple[str, ...] | None:
        text = self._saved.get(file.stamp)
        if text is None and self._unverified is UnverifiedChoice.ALL:
            text = next(reversed(list(self._saved.values())), None)
        if text is None:
            return None
        if text not in self._saved_lines:
            self._saved_lines[text] = split_lines(text)
        return self._saved_lines[text]
