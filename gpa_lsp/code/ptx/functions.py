"""Heads of functions, and functions whose head and body are read when they are first looked at."""

import re
from collections.abc import Callable
from functools import cached_property

from msgspec import Struct

from gpa_lsp.code.ptx.bodies import Body
from gpa_lsp.code.ptx.constants import evaluate_constant
from gpa_lsp.code.ptx.declarations import read_variables
from gpa_lsp.code.ptx.layout import lay_out
from gpa_lsp.code.ptx.model import PtxFunction, PtxVariable, Space
from gpa_lsp.foundation.errors import InputError

_HEAD = re.compile(
    r"\s*+(?:\.attribute\s*+\((?:[^()]++|\([^()]*+\))*+\)\s*+)?(?:\(([^()]*+)\)\s*+)?([A-Za-z_$%][\w$%.@]*+)\s*+(?:\(([^()]*+)\))?"
    r"([^()]*+(?:\([^()]*+\)[^()]*+)*+)\Z",
    re.ASCII,
)
_THREADS = re.compile(r"\.(maxntid|reqntid|reqnctapercluster)\s+(\w+)\s*(?:,\s*(\w+)\s*)?(?:,\s*(\w+)\s*)?", re.ASCII)
_MOST_PARAMETERS = 4096
_MOST_DIMENSION = 1 << 32


class HeadDetails(Struct, frozen=True, kw_only=True):
    """What stands in a function's head; fields as in :class:`~gpa_lsp.code.ptx.model.PtxFunction`."""

    parameters: tuple[PtxVariable, ...]
    returns: tuple[PtxVariable, ...]
    max_threads: int | None
    required_threads: tuple[int, int, int] | None
    cluster_blocks: int | None


class FunctionHead(Struct, frozen=True, kw_only=True, dict=True):
    """What stands before a function's body."""

    name: str  # as written
    is_entry: bool  # a kernel
    text: str  # from behind ``.entry`` or ``.func`` to the body or semicolon
    line: int  # 1-based, where it begins

    @cached_property
    def details(self) -> HeadDetails:
        """Its parameters and limits, read when they are first looked at.

        Raises:
            InputError: they are not PTX; the place is filled in.
        """
        try:
            return read_head_details(self.text)
        except InputError as error:
            error.place = error.place or f"line {self.line}"
            raise

    @property
    def signature(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bytes of what it returns and takes."""
        details = self.details
        returns, parameters = (tuple(one.size_bytes for one in some) for some in (details.returns, details.parameters))
        return returns, parameters


BODY_FIELDS = frozenset(Body.__struct_fields__)
HEAD_FIELDS = frozenset(HeadDetails.__struct_fields__)


class DeferredFunction(PtxFunction):
    """A function whose head and body are read, each when one of its fields is first looked at.

    Errors in them are raised then, as :class:`~gpa_lsp.foundation.errors.InputError`, and again each time.
    """

    __slots__ = ("_read_body", "_read_head")

    _read_head: "Callable[[], HeadDetails]"
    _read_body: "Callable[[], Body]"

    @classmethod
    def defer(
        cls, head: FunctionHead, read_head: "Callable[[], HeadDetails]", read_body: "Callable[[], Body]"
    ) -> "DeferredFunction":
        """A function with that head."""
        function = object.__new__(cls)
        object.__setattr__(function, "name", head.name)
        object.__setattr__(function, "is_entry", head.is_entry)
        object.__setattr__(function, "_read_head", read_head)
        object.__setattr__(function, "_read_body", read_body)
        return function

    def __getattr__(self, name: str) -> object:
        # Only asked for what is not set: a field of the head or the body, before it was read.
        if name in HEAD_FIELDS:
            self._take(self._read_head(), HEAD_FIELDS)
        elif name in BODY_FIELDS:
            self._take(self._read_body(), BODY_FIELDS)
        else:
            raise AttributeError(name)
        return getattr(self, name)

    def _take(self, read: object, names: frozenset[str]) -> None:
        for name in names:
            object.__setattr__(self, name, getattr(read, name))


def find_function_head(text: str, *, is_entry: bool, line: int) -> FunctionHead:
    """The head that stands between ``.entry`` or ``.func`` and the body or semicolon, of which the name alone is read.

    Args:
        line: 1-based, where it begins.

    Raises:
        InputError: it is no head.

    >>> head = find_function_head("(.param .b32 out) half(.param .b32 a, .param .b64 b) .maxntid 128, 2", is_entry=False, line=1)
    >>> head.name, head.signature, [one.offset_bytes for one in head.details.parameters], head.details.max_threads
    ('half', ((4,), (4, 8)), [0, 8], 256)
    """
    return FunctionHead(name=_match_head(text)[2], is_entry=is_entry, text=text, line=line)


def read_head_details(text: str) -> HeadDetails:
    """Read the parameters and limits in a head.

    Raises:
        InputError: it is no head.

    >>> read_head_details("pair() .explicitcluster .reqnctapercluster 2, 2, 1").cluster_blocks
    4
    """
    match = _match_head(text)
    threads = {kind: sizes for kind, *sizes in _THREADS.findall(match[4])}
    most = _read_threads(threads.get("maxntid"))
    cluster = _read_threads(threads.get("reqnctapercluster"))
    return HeadDetails(
        parameters=_read_parameters(match[3]),
        returns=_read_parameters(match[1]),
        max_threads=None if most is None else most[0] * most[1] * most[2],
        required_threads=_read_threads(threads.get("reqntid")),
        cluster_blocks=None if cluster is None else cluster[0] * cluster[1] * cluster[2],
    )


def _match_head(text: str) -> re.Match[str]:
    match = _HEAD.match(text)
    if match is None:
        raise InputError(
            f"{' '.join(text.split())[:80]!r} is not a function header", remedy="check that the PTX is complete"
        )
    return match


def _read_parameters(text: str | None) -> tuple[PtxVariable, ...]:
    parts = (text or "").split(",", _MOST_PARAMETERS)
    if len(parts) > _MOST_PARAMETERS:
        raise InputError(f"more than {_MOST_PARAMETERS} parameters", remedy="no kernel takes that many")
    found: list[PtxVariable] = []
    for part in parts:
        if part.strip():
            found.extend(read_variables(part))
    if any(variable.space != Space.PARAM for variable in found):
        raise InputError("a parameter is not in .param", remedy="compile for the ABI (PTX 3.0 and later)")
    return lay_out(found)[0]


def _read_threads(sizes: list[str] | None) -> tuple[int, int, int] | None:
    if sizes is None:
        return None
    found = [evaluate_constant(size) if size else 1 for size in sizes]
    if any(isinstance(size, float) or not 1 <= size < _MOST_DIMENSION for size in found):
        raise InputError(f"blocks of {', '.join(sizes)} threads", remedy="give positive numbers")
    return int(found[0]), int(found[1]), int(found[2])
