"""Inline chains from the rows of a line program.

A row of inlined code names the row of its call site, which may itself be in inlined code: followed to the end, the links give the chain of
frames from the innermost line out to the compiled function. A link must point to an earlier row, so chains end; how many frames all chains
may have together is limited, because a program of a few bytes per row can link each row to the one before.
"""

from collections.abc import Callable
from pathlib import Path

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.locations import Frame, InlineChain
from gpa_lsp.binary.allowance import DAMAGED, Allowance
from gpa_lsp.binary.line_program import LineRows

_NOBODY = -1
_FRAMES_PER_ROW = 64
"""Frames of all chains together, per row of the table; where libraries are at their worst, templates nest a few dozen deep."""
_FEW_FRAMES = 4096


class ChainTree:
    """The distinct chains of a function: each is its innermost frame and the number of its callers' chain, so equal chains are one.

    >>> tree = ChainTree()
    >>> kernel = tree.add(("a.cu", 9, "kernel"))
    >>> body = tree.add(("a.cu", 3, "square"), kernel)
    >>> tree.add(("a.cu", 3, "square"), kernel) == body
    True
    >>> [str(frame.source_line) for frame in tree.chain(body)]
    ['a.cu:3', 'a.cu:9']
    """

    def __init__(self) -> None:
        self._number_of: dict[tuple[tuple[str, int, str | None], int], int] = {}
        self._frames: list[Frame] = []
        self._callers: list[int] = []
        self._depths: list[int] = []

    def add(self, frame: tuple[str, int, str | None], callers: int = _NOBODY) -> int:
        """The number of a chain.

        Args:
            frame: file, line and function of its innermost frame.
            callers: number of the chain of the call site; left out for code that is not inlined.
        """
        key = (frame, callers)
        number = self._number_of.get(key)
        if number is None:
            number = self._number_of[key] = len(self._frames)
            self._frames.append(Frame(file=frame[0], line=frame[1], function=frame[2]))
            self._callers.append(callers)
            self._depths.append(1 if callers == _NOBODY else self._depths[callers] + 1)
        return number

    def depth(self, number: int) -> int:
        """How many frames a chain has."""
        return self._depths[number]

    def chain(self, number: int) -> InlineChain:
        """The frames of a chain, innermost first."""
        frames = []
        while number != _NOBODY:
            frames.append(self._frames[number])
            number = self._callers[number]
        return tuple(frames)


class SequenceChains:
    """Finds the chain of each row of one sequence.

    Args:
        rows: the sequence.
        tree: where the chains are kept.
        file_name: file number → path.
        function_name: offset as in :attr:`LineRows.names` → mangled name, None where the table has no names.
        path: the file, for errors.
        place: the section, for errors.
    """

    def __init__(
        self,
        rows: LineRows,
        tree: ChainTree,
        *,
        file_name: Callable[[int], str],
        function_name: Callable[[int], str | None],
        path: Path | None,
        place: str,
    ) -> None:
        self._rows = rows
        self._tree = tree
        self._file_name = file_name
        self._function_name = function_name
        self._path = path
        self._place = place
        self._number_of: dict[tuple[int, str], int] = {}

    def number(self, row: int, compiled_function: str) -> int:
        """The number, in the tree, of the chain of a row.

        Args:
            row: 0-based index of the row.
            compiled_function: mangled name of the function whose code the row is in, for the outermost frame.

        Raises:
            InputError: a link points forward, or a file or a name does not exist.
        """
        inlined: list[int] = []
        callers = _NOBODY
        while context := self._rows.contexts[row]:
            if context > row:
                raise InputError(
                    f"row {row + 1} is inlined into row {context}, which is not before it",
                    path=self._path,
                    place=self._place,
                    remedy=DAMAGED,
                )
            inlined.append(row)
            known = self._number_of.get((context, compiled_function))
            if known is not None:
                callers = known
                break
            row = context - 1
        else:
            callers = self._tree.add((*self._place_of(row), compiled_function))
        while inlined:
            row = inlined.pop()
            self._number_of[self._rows.contexts[row], compiled_function] = callers
            callers = self._tree.add((*self._place_of(row), self._function_name(self._rows.names[row])), callers)
        return callers

    def _place_of(self, row: int) -> tuple[str, int]:
        return self._file_name(self._rows.files[row]), self._rows.lines[row]


def build_chains(
    tree: ChainTree, numbers: list[int], *, row_count: int, path: Path | None, place: str
) -> tuple[InlineChain, ...]:
    """The chains of the given numbers.

    Args:
        tree: where they are.
        numbers: distinct numbers.
        row_count: how many rows the line table has, which limits what its chains may sum up to.
        path: the file, for errors.
        place: the section, for errors.

    Raises:
        InputError: the chains are longer than any compiler makes them.
    """
    allowance = Allowance(_FRAMES_PER_ROW * row_count + _FEW_FRAMES, path=path, place=place)
    for number in numbers:
        allowance.spend(tree.depth(number))
    return tuple(tree.chain(number) for number in numbers)
