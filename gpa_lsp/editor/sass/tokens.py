"""The semantic tokens of a SASS document.

A document of 22,000 instructions has a hundred and fifty thousand tokens, so equal pieces of lines are encoded once: what stands before an
instruction, its words, what is said behind it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.code.binary.uses import UseFinder
from gpa_lsp.editor.lines.positions import UnitCounter
from gpa_lsp.editor.sass.library import SassDocument, SectionKind
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
# Of these kinds, those that name no resource are constants: RZ, PT
_MAY_BE_RESULTS = frozenset(
    {SpanKind.REGISTER, SpanKind.UNIFORM_REGISTER, SpanKind.PREDICATE, SpanKind.UNIFORM_PREDICATE}
)


class Token(NamedTuple):
    """One word."""

    start: int  # characters before it
    length: int  # characters
    type: int  # number of its :class:`TokenType`
    modifiers: int  # one bit per :class:`TokenModifier`


class Run(NamedTuple):
    """Tokens that follow each other on one line, as the protocol wants them but for the place of the first one."""

    first: int  # characters (code units, where it says so) before the first token; -1 when there is none
    numbers: tuple[int, ...]  # length, type and modifiers of the first token, then five numbers for each of the others
    last: int  # characters before the last token


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
        """Number of operands, from the first on, that are results."""
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


_HOT_RATIO = 0.05
_WARM_RATIO = 0.01
_REMARK = " // "
_QUOTED = " | "
_ADDRESS_END = "*/"
_NUMBER = re.compile(r"[<>]?\d[\d,.]*(?: %)?")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_PADDING = "// padding"
_NO_TOKENS = make_run([])
_Key = TypeVar("_Key")
_DECLARATION = 1 << TokenModifier.DECLARATION


def encode_tokens(document: SassDocument, units: UnitCounter) -> list[int]:
    """All tokens, five numbers each: lines after the previous token, units after it on its line, units, type, modifiers."""
    return _Encoder(document, units).encode()


class _Piece(NamedTuple):
    """A part of a line."""

    run: Run  # its tokens, in code units
    units: int  # of the whole part


class _Encoder:
    """Encodes one document."""

    def __init__(self, document: SassDocument, units: UnitCounter) -> None:
        self._document = document
        self._extra_units = _ExtraUnits(units)
        self._encoder = InstructionEncoder()
        self._heads: dict[tuple[str, int], _Piece] = {}
        self._instructions: dict[str, _Piece] = {}
        self._remarks: dict[tuple[str, int], _Piece] = {}
        self._heat = _list_heat(document)
        self._kinds = {section.first_line: section.kind for section in document.sections}

    def encode(self) -> list[int]:
        data: list[int] = []
        document = self._document
        column = document.instruction_column
        texts = document.shown.kernel.report.instructions.texts
        before = 1  # line of the last token
        for line, (text, row) in enumerate(zip(document.lines, document.row_of_line.tolist(), strict=True), start=1):
            if row >= 0:
                numbers = self._encode_row(text, column, column + len(texts[row]), self._heat[row])
            else:
                numbers = self._encode_heading(text, line) if text else []
            if numbers:
                numbers[0] = line - before
                data += numbers
                before = line
        return data

    def _encode_row(self, text: str, column: int, end: int, heat: int) -> list[int]:
        """Address, number, instruction, remark."""
        split = text.find(_ADDRESS_END, 0, column) + len(_ADDRESS_END) if text[0] != " " else 0
        numbers = [0, 0, split, TokenType.COMMENT, 0] if split else []
        head, instruction, tail = text[split:column], text[column:end], text[end:]
        remark = tail.lstrip()
        place, last = split, 0
        for piece in (
            self._heads.get((head, heat))
            or self._keep(self._heads, (head, heat), head, make_run(_find_number(head, heat))),
            self._instructions.get(instruction)
            or self._keep(self._instructions, instruction, instruction, self._encoder.encode(instruction)),
            _Piece(_NO_TOKENS, len(tail) - len(remark)),
            self._encode_remark(remark, heat),
        ):
            (first, rest, final), units = piece
            if first >= 0:
                numbers += (0, place + first - last)
                numbers += rest
                last = place + final
            place += units
        return numbers

    def _encode_remark(self, remark: str, heat: int) -> _Piece:
        """Tokens of a remark, with its stall reason."""
        return self._remarks.get((remark, heat)) or self._keep(
            self._remarks, (remark, heat), remark, make_run(self._split_remark(remark, heat))
        )

    def _split_remark(self, remark: str, heat: int) -> list[Token]:
        start = self._document.reason_offset
        reason = remark[start:].partition(" ")[0] if start is not None else ""
        if start is None or not reason or remark.startswith(_PADDING):
            return [Token(0, len(remark), TokenType.COMMENT, 0)] if remark else []
        end = start + len(reason)
        tokens = [
            Token(0, len(remark[:start].rstrip()), TokenType.COMMENT, 0),
            Token(start, len(reason), TokenType.ENUM_MEMBER, heat),
        ]
        rest = remark[end:].lstrip()
        return [*tokens, Token(len(remark) - len(rest), len(rest), TokenType.COMMENT, 0)] if rest else tokens

    def _encode_heading(self, text: str, line: int) -> list[int]:
        kind = self._kinds.get(line)
        is_label = kind in (SectionKind.FUNCTION, SectionKind.BLOCK)
        run = self._translate(text, make_run(_find_label(text, kind) if is_label else _find_quote(text)))
        return [0, run.first, *run.numbers]

    def _keep(self, pieces: dict[_Key, _Piece], key: _Key, text: str, run: Run) -> _Piece:
        is_plain = text.isascii()
        piece = _Piece(run, len(text)) if is_plain else _Piece(self._translate(text, run), self._count(text))
        pieces[key] = piece
        return piece

    def _translate(self, text: str, run: Run) -> Run:
        """A run in characters as one in code units; mostly they are the same."""
        if self._count(text) == len(text):
            return run
        return make_run(
            [
                token._replace(
                    start=self._count(text[: token.start]),
                    length=self._count(text[token.start : token.start + token.length]),
                )
                for token in read_run(run)
            ]
        )

    def _count(self, text: str) -> int:
        if text.isascii():
            return len(text)
        return len(text) + sum([self._extra_units[character] for character in _NOT_ASCII.findall(text)])


class _ExtraUnits(dict[str, int]):
    """Code units of a character beyond one, asked for once."""

    def __init__(self, units: UnitCounter) -> None:
        super().__init__()
        self._units = units

    def __missing__(self, character: str) -> int:
        extra = self[character] = self._units.client_num_units(character) - 1
        return extra


def _list_heat(document: SassDocument) -> list[int]:
    """Modifiers of each instruction's number and stall reason, by its share of the samples."""
    report = document.shown.kernel.report
    samples = report.instructions.all_samples.sum(axis=1)
    total = max(report.total_samples, 1)
    hot, warm = 1 << TokenModifier.HOT, 1 << TokenModifier.WARM
    return [hot if one >= _HOT_RATIO * total else warm if one >= _WARM_RATIO * total else 0 for one in samples.tolist()]


def _find_number(head: str, heat: int) -> list[Token]:
    """The number between the address and the instruction; the bars of loops are plain."""
    match = _NUMBER.search(head)
    return [] if match is None else [Token(match.start(), len(match[0]), TokenType.NUMBER, heat)]


def _find_label(text: str, kind: SectionKind | None) -> Sequence[Token]:
    """A label with its colon, and perhaps a remark."""
    label, mark, _ = text.partition(_REMARK)
    name = label.rstrip().removesuffix(":")
    look = TokenType.FUNCTION if kind is SectionKind.FUNCTION else TokenType.LABEL
    tokens = [Token(0, len(name), look, _DECLARATION)]
    if mark:
        tokens.append(Token(len(label) + 1, len(text) - len(label) - 1, TokenType.COMMENT, 0))
    return tokens


def _find_quote(text: str) -> Sequence[Token]:
    """A remark, whose end may be quoted source."""
    start = len(text) - len(text.lstrip())
    place, mark, source = text.partition(_QUOTED)
    if not mark or not start:
        return [Token(start, len(text) - start, TokenType.COMMENT, 0)]
    return [
        Token(start, len(place) - start, TokenType.COMMENT, 0),
        Token(len(place) + len(mark), len(source), TokenType.STRING, 0),
    ]
