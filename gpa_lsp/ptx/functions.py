"""Heads of functions, and functions whose body is read when it is first looked at."""

import re
from collections.abc import Callable
from dataclasses import fields

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.ptx.bodies import Body
from gpa_lsp.ptx.constants import evaluate_constant
from gpa_lsp.ptx.declarations import read_variables
from gpa_lsp.ptx.layout import lay_out
from gpa_lsp.ptx.model import PtxFunction, PtxVariable, Space

_HEAD = re.compile(
    r"\s*+(?:\.attribute\s*+\((?:[^()]++|\([^()]*+\))*+\)\s*+)?(?:\(([^()]*+)\)\s*+)?([A-Za-z_$%][\w$%.@]*+)\s*+(?:\(([^()]*+)\))?"
    r"([^()]*+(?:\([^()]*+\)[^()]*+)*+)\Z",
    re.ASCII,
)
_THREADS = re.compile(r"\.(maxntid|reqntid|reqnctapercluster)\s+(\w+)\s*(?:,\s*(\w+)\s*)?(?:,\s*(\w+)\s*)?", re.ASCII)
_MOST_PARAMETERS = 4096
_MOST_DIMENSION = 1 << 32
BODY_FIELDS = frozenset(field.name for field in fields(Body))


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionHead:
    """What stands before a function's body; fields as in :class:`~gpa_lsp.ptx.model.PtxFunction`."""

    name: str
    is_entry: bool
    parameters: tuple[PtxVariable, ...]
    returns: tuple[PtxVariable, ...]
    max_threads: int | None
    required_threads: tuple[int, int, int] | None
    cluster_blocks: int | None

    @property
    def signature(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bytes of what it returns and takes."""
        returns, parameters = (tuple(one.size_bytes for one in some) for some in (self.returns, self.parameters))
        return returns, parameters


class DeferredFunction(PtxFunction):
    """A function whose body is read when one of its fields is first looked at.

    Errors in the body are raised then, as :class:`~gpa_lsp.basis.errors.InputError`, and again each time.
    """

    __slots__ = ("_read_body",)

    _read_body: "Callable[[], Body]"

    @classmethod
    def defer(cls, head: FunctionHead, read_body: "Callable[[], Body]") -> "DeferredFunction":
        """A function with that head."""
        function = object.__new__(cls)
        for field in fields(head):
            object.__setattr__(function, field.name, getattr(head, field.name))
        object.__setattr__(function, "_read_body", read_body)
        return function

    def __getattr__(self, name: str) -> object:
        # Only asked for what is not set: a field of the body, before it was read.
        if name not in BODY_FIELDS:
            raise AttributeError(name)
        body = self._read_body()
        for field in BODY_FIELDS:
            object.__setattr__(self, field, getattr(body, field))
        return getattr(body, name)


def read_function_head(text: str, *, is_entry: bool) -> FunctionHead:
    """Read what stands between ``.entry`` or ``.func`` and the body or semicolon.

    Raises:
        InputError: it is no head.

    >>> head = read_function_head("(.param .b32 out) half(.param .b32 a, .param .b64 b) .maxntid 128, 2", is_entry=False)
    >>> head.name, head.signature, [one.offset_bytes for one in head.parameters], head.max_threads
    ('half', ((4,), (4, 8)), [0, 8], 256)
    >>> read_function_head("pair() .explicitcluster .reqnctapercluster 2, 2, 1", is_entry=True).cluster_blocks
    4
    """
    match = _HEAD.match(text)
    if match is None:
        raise InputError(
            f"{' '.join(text.split())[:80]!r} is not a function header", remedy="check that the PTX is complete"
        )
    threads = {kind: sizes for kind, *sizes in _THREADS.findall(match[4])}
    most = _read_threads(threads.get("maxntid"))
    cluster = _read_threads(threads.get("reqnctapercluster"))
    return FunctionHead(
        name=match[2],
        is_entry=is_entry,
        parameters=_read_parameters(match[3]),
        returns=_read_parameters(match[1]),
        max_threads=None if most is None else most[0] * most[1] * most[2],
        required_threads=_read_threads(threads.get("reqntid")),
        cluster_blocks=None if cluster is None else cluster[0] * cluster[1] * cluster[2],
    )


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
