"""Questions of scenes (:mod:`tests.editor.scenes`) about the SASS document of the kernel that is shown first.

A question about cursors has one on each line of its block, some words of a line with ``^`` in them, and the answer behind ``→``.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from lsprotocol.types import DocumentSymbol, Hover, MarkupContent, Position, Range
from msgspec.structs import replace

from gpa_lsp.editor import jumps
from gpa_lsp.editor.lines.positions import read_line
from gpa_lsp.editor.protocol.commands import load_commands
from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.editor.sass import jumps as jumps_module
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.hints import list_hints
from gpa_lsp.editor.sass.hot_rows import sort_rows
from gpa_lsp.editor.sass.hover import describe_hover, describe_instruction
from gpa_lsp.editor.sass.jumps import find_definition, find_highlights, find_references, list_jumps
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.sass.links import find_ties
from gpa_lsp.editor.sass.outline import list_folds, list_symbols
from gpa_lsp.editor.sass.token_types import MODIFIER_NAMES, TYPE_NAMES
from gpa_lsp.editor.sass.tokens import encode_tokens
from tests.editor.sass.cursors import put_cursor, read_places
from tests.editor.sass.documents import check_document
from tests.editor.scenes import Asked, question, read_label


def read_text(hover: Hover) -> str:
    assert isinstance(hover.contents, MarkupContent)
    return hover.contents.value


@question
def sass(asked: Asked) -> Iterator[str]:
    """The text of the document, with the columns that are named; ``code``: without its header."""
    names = [name for name in asked.operands if name != "code"]
    shown = asked.session.snapshot.visible[0]
    document = build_document(asked.open_sass().document.uri, shown, names) if names else asked.open_sass().document
    check_document(document)
    view = asked.open_sass()
    for number in range(1, len(view.document.lines) + 1):
        hover = describe_hover(view, Position(number - 1, 10))
        assert hover is None or len(read_text(hover).splitlines()) <= 12
        assert (describe_instruction(view, number) is None) == (view.document.find_row(number) is None)
    start = document.sections[0].first_line - 1 if "code" in asked.operands else 0
    yield from (line.rstrip() for line in document.lines[start:-1])


@question
def sass_hints(asked: Asked) -> Iterator[str]:
    view = asked.open_sass()
    first, last = map(int, asked.operands or (1, 10**6))
    for hint in list_hints(view, first, last):
        text = view.document.lines[hint.position.line]
        assert hint.position.character == len(text)
        yield f"{text[2 : text.index('*/')]}: {read_label(hint)}"


@question
def sass_hover(asked: Asked) -> Iterator[str]:
    view = replace(asked.open_sass(), has_links=asked.session.abilities.links)
    found = describe_hover(view, put_cursor(view, " ".join(asked.operands)))
    assert found is not None and found.range is not None
    text = read_text(found)
    assert len(text.splitlines()) <= 12 and defuse(text.rpartition("\n")[2]) == text.rpartition("\n")[2]
    yield f"at {read_places(view, [found.range])[0]}"
    yield from text.splitlines()


@question
def sass_page(asked: Asked) -> Iterator[str]:
    view = asked.open_sass()
    line = read_line(put_cursor(view, " ".join(asked.operands)))
    yield from (describe_instruction(view, line) or "nothing").splitlines()


@question
def outline(asked: Asked) -> Iterator[str]:
    def walk(symbols: Sequence[DocumentSymbol], indent: str, outside: Range | None) -> Iterator[str]:
        for symbol in symbols:
            assert symbol.range.start.line <= symbol.selection_range.start.line <= symbol.range.end.line
            assert outside is None or outside.start.line <= symbol.range.start.line
            assert outside is None or symbol.range.end.line <= outside.end.line
            yield f"{indent}{symbol.kind.name.lower()} {symbol.name}: {symbol.detail}"
            yield from walk(symbol.children or (), f"{indent}  ", symbol.range)

    yield from walk(list_symbols(asked.open_sass()), "", None)


@question
def folds(asked: Asked) -> Iterator[str]:
    """Lines of each fold and the text it begins with."""
    document = asked.open_sass().document
    for fold in list_folds(document):
        text = document.lines[fold.start_line].rstrip()
        yield f"{fold.start_line + 1}-{fold.end_line + 1} {fold.kind.value if fold.kind else None}: {re.sub(' +', ' ', text)}"


def cut_units(text: str, start: int, length: int, encoding: str) -> str:
    """A piece of a line, by code units."""
    size = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    name = encoding if encoding == "utf-8" else f"{encoding}-le"
    return text.encode(name)[start * size : (start + length) * size].decode(name)


def read_tokens(view: SassView, encoding: str = "utf-16") -> Iterator[tuple[int, str]]:
    """The 1-based line of every token, and its text, type and modifiers."""
    data = encode_tokens(view.document, view.positions.units)
    line = start = length = 0
    for index in range(0, len(data), 5):
        down, right, units, kind, bits = data[index : index + 5]
        assert down > 0 or right >= length or index == 0, "tokens overlap"
        line, start, length = line + down, right if down else start + right, units
        names = [name for bit, name in enumerate(MODIFIER_NAMES) if bits >> bit & 1]
        text = cut_units(view.document.lines[line], start, length, encoding)
        yield line + 1, " ".join([f"`{text.strip()}`", TYPE_NAMES[kind], *names])


@question
def tokens(asked: Asked) -> Iterator[str]:
    """The tokens of the first line with some words in it."""
    view = asked.open_sass()
    line = read_line(put_cursor(view, f"^{' '.join(asked.operands)}"))
    yield from (token for number, token in read_tokens(view) if number == line)


@question
def rows(asked: Asked) -> Iterator[str]:
    """Instructions in the order of a column."""
    view = asked.open_sass()
    for row in sort_rows(view, asked.operands[0]):
        (at,) = read_places(view, [row.location.range])
        yield f"{row.value} {at} · {row.detail}"
        assert at.endswith(row.text)


@question
def ties(asked: Asked) -> Iterator[str]:
    """Line and colour of each tie between the source and its SASS, and the opcodes in each stretch."""
    document = asked.open_sass().document
    texts = document.shown.kernel.report.instructions.texts
    for tie in find_ties(asked.session, document.uri, asked.uri):
        stretches = [[document.find_row(line) for line in range(first, last + 1)] for first, last in tie.stretches]
        opcodes = [" ".join(texts[row].split()[0] for row in own if row is not None) for own in stretches]
        yield f"{tie.line} {tie.colour}: {', '.join(opcodes)}"


@question
def links(asked: Asked) -> Iterator[str]:
    """Instructions of a source line by kernel: each stretch from its first to its last, and the one that matters most."""
    for link in load_commands()["gpaLsp.findLinked"](asked.session, (asked.uri, asked.line - 1)):
        document = asked.session.sass.make(link["uri"])
        assert document is not None
        lines, primary = document.lines, link["primary"]
        stretches = []
        for one in link["ranges"]:
            first, last = lines[one["start"]["line"]], lines[one["end"]["line"]]
            assert (first[: one["start"]["character"]].strip(), last[one["end"]["character"] :].strip()) == ("", "")
            stretches.append(" – ".join(line[document.instruction_column :].split()[0] for line in (first, last)))
        text = lines[primary["start"]["line"]][primary["start"]["character"] : primary["end"]["character"]]
        assert text in document.shown.kernel.report.instructions.texts
        yield f"{link['text']}: {', '.join(stretches)}; {text}"


@question
def linked_lines(asked: Asked) -> Iterator[str]:
    """Source lines of an instruction, innermost first."""
    view = asked.open_sass()
    line = read_line(put_cursor(view, " ".join(asked.operands)))
    for link in load_commands()["gpaLsp.findLinked"](asked.session, (view.document.uri, line - 1)):
        assert link["ranges"] == [link["primary"]]
        yield f"{link['uri'].rpartition('/')[2]}:{link['primary']['start']['line'] + 1} {link['kernel']}: {link['text']}"


@question
def sass_chain(asked: Asked) -> Iterator[str]:
    """The call hierarchy of an instruction, one call deep, both ways."""
    view = asked.open_sass()
    item = jumps_module.prepare(view, read_line(put_cursor(view, " ".join(asked.operands))))
    if item is None:
        yield "nothing"
        return
    yield f"{item.name}: {item.detail}"
    for call in jumps.list_incoming(asked.session, item.data) or ():
        yield f"← {call.from_.name}: {call.from_.detail} · {', '.join(read_places(view, call.from_ranges))}"
    for made in jumps.list_outgoing(asked.session, item.data) or ():
        yield f"→ {made.to.name}: {made.to.detail} · {', '.join(read_places(view, made.from_ranges))}"


def ask_cursors(asked: Asked, answer: Callable[[SassView, Position], str]) -> Iterator[str]:
    view = asked.open_sass()
    for row in asked.body.splitlines():
        cursor = row.partition(" → ")[0]
        yield f"{cursor} → {answer(view, put_cursor(view, cursor))}"


@question
def define(asked: Asked) -> Iterator[str]:
    def answer(view: SassView, position: Position) -> str:
        found = find_definition(view, position)
        assert found is None or {one.uri for one in found} == {view.document.uri}
        return "nothing" if found is None else "; ".join(read_places(view, [one.range for one in found]))

    yield from ask_cursors(asked, answer)


@question
def refer(asked: Asked) -> Iterator[str]:
    """References; ``alone``: without declarations."""

    def answer(view: SassView, position: Position) -> str:
        found = find_references(view, position, with_declarations="alone" not in asked.operands)
        return "nothing" if found is None else "; ".join(read_places(view, [one.range for one in found]))

    yield from ask_cursors(asked, answer)


@question
def highlight(asked: Asked) -> Iterator[str]:
    def answer(view: SassView, position: Position) -> str:
        found = find_highlights(view, position)
        if found is None:
            return "nothing"
        places = read_places(view, [one.range for one in found])
        kinds = [one.kind.name.lower() if one.kind else "" for one in found]
        return "; ".join(f"{kind} {at}" for kind, at in zip(kinds, places, strict=True))

    yield from ask_cursors(asked, answer)


@question
def operands(asked: Asked) -> Iterator[str]:
    """Place and first line of hovers."""

    def answer(view: SassView, position: Position) -> str:
        found = describe_hover(view, position)
        if found is None or found.range is None:
            return "nothing"
        return f"{read_places(view, [found.range])[0]}: {read_text(found).splitlines()[0].rstrip()}"

    yield from ask_cursors(asked, answer)


@question
def sass_causes(asked: Asked) -> Iterator[str]:
    """Causes of the instruction of a cursor; ``sass-victims``: those it stalls."""

    def answer(view: SassView, position: Position) -> str:
        row = view.document.find_row(read_line(position))
        assert row is not None
        found = list_jumps(view, row, is_cause=True)
        assert all(jump.sass == jump.location for jump in found)
        return "; ".join(f"{jump.samples:g} {jump.ratio:.2f} {jump.text}" for jump in found) or "nothing"

    yield from ask_cursors(asked, answer)


@question
def sass_victims(asked: Asked) -> Iterator[str]:
    def answer(view: SassView, position: Position) -> str:
        row = view.document.find_row(read_line(position))
        assert row is not None
        found = list_jumps(view, row, is_cause=False)
        return "; ".join(read_places(view, [jump.location.range for jump in found])) or "nothing"

    yield from ask_cursors(asked, answer)
