"""The words of one instruction, and what each is."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpa_lsp.binary.model import Flow
from gpa_lsp.binary.opcodes import describe_mnemonic
from gpa_lsp.binary.uses import UseFinder
from gpa_lsp.editor.sass.operand_spans import SpanKind, find_mnemonic, has_target, is_address, scan_operand
from gpa_lsp.editor.sass.token_types import TokenModifier, TokenType

_READONLY = 1 << TokenModifier.READONLY
_STATIC = 1 << TokenModifier.STATIC
_MODIFICATION = 1 << TokenModifier.MODIFICATION
_SEPARATOR = ", "

_LOOKS = {
    SpanKind.GUARD: (TokenType.KEYWORD, 0),
    SpanKind.REGISTER: (TokenType.VARIABLE, 0),
    SpanKind.UNIFORM_REGISTER: (TokenType.VARIABLE, _STATIC),
    SpanKind.PREDICATE: (TokenType.PARAMETER, 0),
    SpanKind.UNIFORM_PREDICATE: (TokenType.PARAMETER, _STATIC),
    SpanKind.CONVERGENCE_BARRIER: (TokenType.PARAMETER, 0),
    SpanKind.SCOREBOARD: (TokenType.PARAMETER, 0),
    SpanKind.SPECIAL_REGISTER: (TokenType.VARIABLE, _READONLY),
    SpanKind.CONSTANT: (TokenType.VARIABLE, _READONLY),
    SpanKind.IMMEDIATE: (TokenType.NUMBER, 0),
    SpanKind.TARGET: (TokenType.LABEL, 0),
}
_MAY_BE_RESULTS = frozenset(
    {SpanKind.REGISTER, SpanKind.UNIFORM_REGISTER, SpanKind.PREDICATE, SpanKind.UNIFORM_PREDICATE}
)
"""Of these kinds, those that name no resource are constants: RZ, PT."""


class Token(NamedTuple):
    """One word.

    Attributes:
        start: characters before it.
        length: characters.
        type: number of its :class:`TokenType`.
        modifiers: one bit per :class:`TokenModifier`.
    """

    start: int
    length: int
    type: int
    modifiers: int


class Run(NamedTuple):
    """Tokens that follow each other on one line, as the protocol wants them but for the place of the first one.

    Attributes:
        first: characters (code units, where it says so) before the first token; -1 when there is none.
        numbers: length, type and modifiers of the first token, then five numbers for each of the others.
        last: characters before the last token.
    """

    first: int
    numbers: tuple[int, ...]
    last: int


def make_run(tokens: Sequence[Token]) -> Run:
    """Tokens as a run.

    >>> make_run([Token(3, 2, 7, 0), Token(9, 1, 2, 1)])
    Run(first=3, numbers=(2, 7, 0, 0, 6, 1, 2, 1), last=9)
    """
    numbers: list[int] = []
    last = first = tokens[0].start if tokens else -1
    for token in tokens:
        if numbers:
            numbers += (0, token.start - last)
        numbers += token[1:]
        last = token.start
    return Run(first, tuple(numbers), last)


def read_run(run: Run) -> Iterator[Token]:
    """The tokens of a run.

    >>> [token.start for token in read_run(make_run([Token(3, 2, 7, 0), Token(9, 1, 2, 1)]))]
    [3, 9]
    """
    start = run.first
    for index in range(0, len(run.numbers), 5):
        if index:
            start += run.numbers[index - 1]
        yield Token(start, *run.numbers[index : index + 3])


class InstructionEncoder:
    """Finds the words of instructions; meant for one pass over a document, whose instructions have most of their words in common."""

    def __init__(self) -> None:
        self._uses = UseFinder()
        self._result_counts: dict[tuple[str, str], int] = {}
        self._openings: dict[str, tuple[Run, str, bool]] = {}
        self._operands: dict[str, Run] = {}
        self._results: dict[str, Run] = {}

    def encode(self, text: str) -> Run:
        """The words of an instruction that have a colour.

        >>> InstructionEncoder().encode("@P0 LDG.E R4, [R2.64]").numbers[:6] == (3, TokenType.KEYWORD, 0, 0, 4, 3)
        True
        """
        end = find_mnemonic(text)[2]
        opening = text[:end]
        (first, numbers, last), mnemonic, takes_target = self._openings.get(opening) or self._keep_opening(opening)
        if end + 1 >= len(text):
            return Run(first, numbers, last)
        operands = text[end + 1 :].split(_SEPARATOR)
        target = len(operands) - 1 if takes_target and is_address(operands[-1]) else -1
        results = self._count_results(mnemonic, operands)
        joined = list(numbers)
        place = end + 1
        for index, operand in enumerate(operands):
            if index < results:
                run = self._results.get(operand) or self._keep(self._results, operand, is_result=True)
            elif index != target:
                run = self._operands.get(operand) or self._keep(self._operands, operand, is_result=False)
            else:
                run = Run(0, (len(operand), TokenType.LABEL, 0), 0)
            if run[0] >= 0:
                joined += (0, place + run[0] - last)
                joined += run[1]
                last = place + run[2]
            place += len(operand) + 2
        return Run(first, tuple(joined), last)

    def _keep_opening(self, opening: str) -> tuple[Run, str, bool]:
        """Guard and opcode: their tokens, the opcode with its modifiers, whether an address of code may follow."""
        guard, start, end = find_mnemonic(opening)
        mnemonic = opening[start:end]
        name, dot, modifiers = mnemonic.partition(".")
        is_control = describe_mnemonic(mnemonic).flow is not Flow.NONE
        tokens = [
            Token(0, guard, TokenType.KEYWORD, 0),
            Token(start, len(name), TokenType.KEYWORD if is_control else TokenType.FUNCTION, 0),
            Token(start + len(name), len(modifiers) + len(dot), TokenType.PROPERTY, 0),
        ]
        run = make_run([token for token in tokens if token.length])
        found = self._openings[opening] = (run, mnemonic, has_target(mnemonic))
        return found

    def _keep(self, runs: dict[str, Run], operand: str, *, is_result: bool) -> Run:
        run = runs[operand] = make_run(list(_split_operand(operand, is_result=is_result)))
        return run

    def _count_results(self, mnemonic: str, operands: Sequence[str]) -> int:
        """How many operands from the first one on are results."""
        table = self._uses.operands
        key = (mnemonic, "".join([table[operand][0] for operand in operands]))
        count = self._result_counts.get(key)
        if count is None:
            written = self._uses.find_written(mnemonic, describe_mnemonic(mnemonic), operands)
            count = self._result_counts[key] = (*written, False).index(False)
        return count


def _split_operand(operand: str, *, is_result: bool) -> Iterator[Token]:
    for span in scan_operand(operand):
        kind, modifiers = _LOOKS[span.kind]
        if span.kind in _MAY_BE_RESULTS:
            modifiers |= _READONLY if not span.resources else _MODIFICATION if is_result else 0
        yield Token(span.start, span.end - span.start, kind, modifiers)
