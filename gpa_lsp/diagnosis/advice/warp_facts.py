"""Requests and branches of a kernel by its PTX alone, with the names of the source: :class:`WarpFacts`, and its words."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from gpa_lsp.code.ptx.model import PtxModule, Space
from gpa_lsp.code.ptx.source_parameters import read_source_parameters
from gpa_lsp.code.symbolic_accesses.find import find_symbolic_accesses
from gpa_lsp.code.symbolic_accesses.model import Factor, StrideTerm, SymbolicAccess, SymbolicAccesses, WarpPattern
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.prose import NOTHING, Amount, Code, Sentence, count, number, say

_WARPS_ALONG_X = "blockDim.x / 32"
_KINDS = {0: "load", 1: "store", 2: "atomic", 3: "atomic"}


class WarpFacts(Struct, frozen=True, kw_only=True):
    """The requests and branches of a kernel."""

    found: SymbolicAccesses  # by its PTX
    # offset of a parameter → its name in the source; without those that have none there
    names: Mapping[int, str] = field(default_factory=dict)
    is_lifted: bool = False  # by machine code, whose registers hold several values one after the other

    def find_array(self, access: SymbolicAccess) -> str | None:
        """The pointer parameter that an address begins at; None where it begins elsewhere."""
        symbols = self.found.table.symbols
        for key, factor in access.address.terms.items():
            parameter = symbols[key[0]].parameter if len(key) == 1 and factor == 1 else None
            if parameter is not None and parameter in self.names:
                return self.names[parameter]
        return None

    def describe_stride(self, access: SymbolicAccess) -> Code | Amount | None:
        """The distance of neighbouring threads in elements, such as ``n + 1``; None where part of it has no name."""
        if not access.stride or any(term.bytes % access.bytes_each for term in access.stride):
            return None
        if len(access.stride) == 1 and not access.stride[0].factors:
            return count(abs(access.stride[0].bytes) // access.bytes_each)
        parts = [self._write_term(term, access.bytes_each) for term in access.stride]
        if any(part is None for part in parts):
            return None
        return Code(text=" + ".join(part for part in parts if part is not None).replace("+ -", "- "))

    def describe_condition(self, access: SymbolicAccess) -> Sentence:
        """Condition of a cost, as in `` for n ≥ 8``; empty where the cost is always reached."""
        if access.least is None:
            return NOTHING
        least = access.least
        if _WARPS_ALONG_X in (factor.name for factor in access.unknown):
            least *= WARP_LANES
        name = self._name_factors(access.unknown)
        if name is None:
            return say(" from {least} on", least=str(least))
        return say(" for {name} ≥ {least}", name=Code(text=name), least=str(least))

    def _write_term(self, term: StrideTerm, bytes_each: int) -> str | None:
        coefficient = term.bytes // bytes_each
        if not term.factors:
            return format_count(coefficient)
        name = self._name_factors(term.factors)
        if name is None:
            return None
        if _WARPS_ALONG_X in (factor.name for factor in term.factors):
            if coefficient % WARP_LANES:
                return None
            coefficient //= WARP_LANES
        return name if coefficient == 1 else f"{format_count(coefficient)} · {name}"

    def _name_factors(self, factors: Sequence[Factor]) -> str | None:
        names = [self._name(factor) for factor in factors]
        return None if any(name is None for name in names) else " · ".join(name for name in names if name is not None)

    def _name(self, factor: Factor) -> str | None:
        if factor.parameter is not None:
            return self.names.get(factor.parameter)
        return "blockDim.x" if factor.name == _WARPS_ALONG_X else factor.name or None

    @property
    def assumption(self) -> Sentence:
        """Assumption about blocks, a clause in brackets; empty where it does not matter."""
        if not self.found.looks_beyond_x:
            return NOTHING
        if self.found.shape is None:
            return say(" (in blocks whose {size} is a multiple of 32)", size=Code(text="blockDim.x"))
        x, y, z = self.found.shape
        depth = f" × {z}" if z > 1 else ""
        return say(" (in blocks of {shape})", shape=f"{x} × {y}{depth}")


def describe_access(facts: WarpFacts, access: SymbolicAccess, *, begins: str = "This ") -> Sentence:
    """Name an access without its cost: ``This load of `a```."""
    array = facts.find_array(access)
    kind = _KINDS[int(access.kind)]
    if access.space == Space.SHARED:
        return say("{begins}{kind} of shared memory", begins=begins, kind=kind)
    if array is None:
        return say("{begins}{kind} of global memory", begins=begins, kind=kind)
    return say("{begins}{kind} of {array}", begins=begins, kind=kind, array=Code(text=array))


def describe_distance(facts: WarpFacts, access: SymbolicAccess) -> Sentence:
    """``: neighbouring threads are `n` elements apart``; empty where that is not the same for all, or not worth telling."""
    stride = facts.describe_stride(access)
    if stride is not None:
        return say("neighbouring threads are {stride} elements apart", stride=stride)
    if access.stride and all(not term.factors for term in access.stride):
        return say("neighbouring threads are {bytes} apart", bytes=count(abs(access.stride[0].bytes), "byte"))
    if access.stride:
        return say("neighbouring threads are apart by a distance known only at run time")
    return say("the threads of a warp are in different rows")


def describe_cost(access: SymbolicAccess, noun: str) -> Sentence:
    """``32 sectors per request``; from the least to the most where that depends on alignment, or on the pitch of shared memory."""
    has_range = access.space == Space.SHARED or not access.unknown
    if has_range and access.most is not None and access.cost is not None and access.most > access.cost:
        return say("{least} to {most} per request", least=number(access.cost), most=number(access.most, noun))
    return say("{cost} per request", cost=number(access.cost, noun))


def find_warp_facts(
    ptx: PtxModule,
    kernel: str,
    *,
    shape: tuple[int, int, int] | None,
    file: str,
    text: str | None,
    lifted_sizes: Sequence[int] | None = None,
) -> WarpFacts | None:
    """The requests and branches of a kernel; None where it is not in the PTX, or too large.

    Args:
        shape: of a block; None when unknown.
        text: of the file; None where it is not at hand.
        lifted_sizes: of the basic blocks of the machine code that the PTX was lifted from; None where a compiler wrote it.
    """
    is_lifted = lifted_sizes is not None
    found = find_symbolic_accesses(ptx, kernel, shape=shape, sizes=lifted_sizes)
    if found is None:
        return None
    own = ptx.functions[kernel].parameters
    parameters = () if text is None else read_source_parameters(file, text, kernel)
    if len(parameters) != len(own):
        return WarpFacts(found=found, is_lifted=is_lifted)
    names = {one.offset_bytes: named.name for one, named in zip(own, parameters, strict=True) if named.name}
    return WarpFacts(found=found, names=names, is_lifted=is_lifted)


def describe_request(facts: WarpFacts, access: SymbolicAccess) -> Sentence:
    """``load of `a`: strided, `n` elements apart, 32 sectors per request for `n` ≥ 8``."""
    subject, pattern = describe_access(facts, access, begins=""), describe_pattern(facts, access)
    if access.cost is None:
        return say("{access}: {pattern}", access=subject, pattern=pattern)
    cost = describe_cost(access, "wavefront" if access.space == Space.SHARED else "sector")
    condition = facts.describe_condition(access)
    return say(
        "{access}: {pattern}, {cost}{condition}", access=subject, pattern=pattern, cost=cost, condition=condition
    )


_WORDS = {
    WarpPattern.UNIFORM: "one address",
    WarpPattern.CONTIGUOUS: "neighbouring elements",
    WarpPattern.MISALIGNED: "neighbouring elements, not aligned",
    WarpPattern.STRIDED: "strided",
    WarpPattern.SCATTERED: "scattered, by what was loaded",
    WarpPattern.UNKNOWN: "unknown",
}


def describe_pattern(facts: WarpFacts, access: SymbolicAccess) -> Sentence:
    """Describe the pattern of a warp's threads: ``strided, `n` elements apart``."""
    stride = facts.describe_stride(access) if access.pattern is WarpPattern.STRIDED else None
    words = say(_WORDS[access.pattern])
    return words if stride is None else say("{words}, {stride} elements apart", words=words, stride=stride)
