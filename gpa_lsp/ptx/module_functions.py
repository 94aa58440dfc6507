"""The functions of a module, their heads and bodies read when needed, and which shared memory a kernel uses."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import partial

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.ptx.bodies import Body, BodyReader
from gpa_lsp.ptx.functions import DeferredFunction, FunctionHead, HeadDetails
from gpa_lsp.ptx.instructions import Signature
from gpa_lsp.ptx.layout import lay_out_shared
from gpa_lsp.ptx.lines import DebugNames, LineReader
from gpa_lsp.ptx.model import PtxFunction, PtxVariable, Space
from gpa_lsp.ptx.opcodes import OpcodeForm

_NAME = re.compile(r"[A-Za-z_$%][\w$%]*", re.ASCII)
_DECLARES_SHARED = re.compile(r"\.shared\s+\.")
_CALLS_INDIRECTLY = re.compile(r"\.(?:callprototype|calltargets)\b")


@dataclass(frozen=True, slots=True)
class Span:
    """A function's body in the text, its braces left out.

    Attributes:
        start: first character.
        end: behind the last one.
        line: 1-based line of ``start``.
    """

    start: int
    end: int
    line: int


class Signatures(Mapping[str, Signature]):
    """Signatures of functions, by name, each read from its head when it is first asked for."""

    __slots__ = ("_heads",)

    def __init__(self, heads: Mapping[str, FunctionHead]) -> None:
        self._heads = heads

    def __getitem__(self, name: str) -> Signature:
        return self._heads[name].signature

    def __contains__(self, name: object) -> bool:
        return name in self._heads

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    def __len__(self) -> int:
        return len(self._heads)


@dataclass(slots=True, kw_only=True)
class ModuleFunctions:
    """Builds the functions of a module.

    Attributes:
        name: of the module, for messages.
        text: comments blanked.
        files: number → path.
        names: of inlined functions.
        heads: of all functions, by name, in order.
        bodies: of those that have one.
        variables: of module level.
    """

    name: str
    text: str
    files: Mapping[int, str]
    names: DebugNames
    heads: Mapping[str, FunctionHead]
    bodies: Mapping[str, Span]
    variables: Mapping[str, PtxVariable]
    _functions: dict[str, PtxFunction] = field(default_factory=dict)
    _module_names: frozenset[str] = frozenset()
    _forms: dict[str, OpcodeForm] = field(default_factory=dict)
    _possible: dict[Signature, tuple[str, ...]] = field(default_factory=dict)
    _declaring: tuple[str, ...] = ()
    """Device functions with shared memory of their own."""
    _mentions: dict[str, frozenset[str]] = field(default_factory=dict)

    def build(self) -> dict[str, PtxFunction]:
        """All functions, by name, in order of the text."""
        self._module_names = frozenset(self.heads) | frozenset(self.variables)
        self._declaring = tuple(
            name
            for name, span in self.bodies.items()
            if not self.heads[name].is_entry and _DECLARES_SHARED.search(self.text, span.start, span.end)
        )
        for name, head in self.heads.items():
            self._functions[name] = DeferredFunction.defer(
                head, partial(self._read_head, name), partial(self._read_body, name)
            )
        return self._functions

    def _read_head(self, name: str) -> HeadDetails:
        try:
            return self.heads[name].details
        except InputError as error:
            raise error.at(self.name) from None

    def _read_body(self, name: str) -> Body:
        span = self.bodies.get(name)
        if span is None:
            return Body()
        head, details = self.heads[name], self._read_head(name)
        reader = BodyReader(
            text=self.text,
            first_line=span.line,
            parameters=details.parameters + details.returns,
            lines=LineReader(name, self.files, self.names),
            signatures=Signatures(self.heads),
            module_names=self._module_names,
            forms=self._forms,
            possible=self._possible,
        )
        try:
            body = reader.read(span.start, span.end)
            if head.is_entry:
                body.shared = lay_out_shared((*body.shared, *self._list_shared(name)))
        except InputError as error:
            raise error.at(self.name) from None
        return body

    def _list_shared(self, kernel: str) -> list[PtxVariable]:
        """Shared memory of module level and of device functions that a kernel can reach."""
        of_module = {name: one for name, one in self.variables.items() if one.space == Space.SHARED}
        if not self._declaring and not of_module:
            return []
        reached = self._find_reached(kernel)
        mentioned = frozenset().union(*(self._find_mentions(name) for name in reached))
        found = [one for name, one in of_module.items() if name in mentioned]
        for name in self._declaring:
            if name in reached:
                found.extend(self._functions[name].shared)
        return found

    def _find_reached(self, kernel: str) -> set[str]:
        """The kernel, and the functions it mentions or can call through pointers, directly or not."""
        reached = {kernel}
        waiting = [kernel]
        calls_indirectly = False
        while waiting:
            name = waiting.pop()
            span = self.bodies[name]
            found = {one for one in self._find_mentions(name) if one in self.bodies}
            if not calls_indirectly and _CALLS_INDIRECTLY.search(self.text, span.start, span.end):
                calls_indirectly = True
                found.update(one for one in self.bodies if not self.heads[one].is_entry)
            waiting.extend(found - reached)
            reached |= found
        return reached

    def _find_mentions(self, name: str) -> frozenset[str]:
        """Names of the module's variables and functions in a body."""
        known = self._mentions.get(name)
        if known is None:
            span = self.bodies[name]
            known = self._module_names.intersection(_NAME.findall(self.text, span.start, span.end))
            self._mentions[name] = known
        return known
