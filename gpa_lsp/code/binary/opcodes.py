"""Facts about opcodes, read from ``opcodes.toml``: effects, and the number of registers that each operand stands for."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, convert

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.foundation.toml_tables import read_own_table

# The opcode of a row that nvdisasm cannot decode; its operands are the low and the high half of the encoding
UNDECODED = "UNDECODED"

_TABLE = "opcodes.toml"


class Pipe(Enum):
    """The execution unit of an opcode, where it is the same on every architecture."""

    ALU = "alu"
    FMA = "fma"
    FP16 = "fp16"
    FP64 = "fp64"
    TENSOR = "tensor"
    XU = "xu"  # Transcendental functions, conversions, bit counts
    LSU = "lsu"
    TEXTURE = "texture"
    UNIFORM = "uniform"
    CONTROL = "control"


class MemorySpace(Enum):
    """Memory space of an access."""

    GLOBAL = "global"
    GENERIC = "generic"
    SHARED = "shared"
    LOCAL = "local"
    CONSTANT = "constant"
    TEXTURE = "texture"
    SURFACE = "surface"
    TENSOR = "tensor"  # Tensor memory of sm_100
    WARP = "warp"  # Registers of other threads of the warp
    ATTRIBUTE = "attribute"  # Vertex attributes (graphics)


class Access(Enum):
    """Kind of memory access."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"  # Reads, changes, returns the old value
    REDUCTION = "reduction"  # Changes, returns nothing
    COPY = "copy"  # Asynchronous copy between spaces
    PREFETCH = "prefetch"


class Synchronisation(Enum):
    """Event other than results that an opcode makes the warp wait for."""

    BLOCK = "block"  # The other warps of the block, or of the block cluster
    FENCE = "fence"  # Its own earlier memory accesses
    WARPGROUP = "warpgroup"  # The other warps of the warp group, or the group's matrix instructions
    WARP = "warp"  # Other threads of the warp
    SLEEP = "sleep"  # Time, or its turn after other threads of the warp


MaskUse = Literal["read", "write"]  # What an opcode does with the predicates that its mask operand names
# What it does with its convergence barrier operand; by position it writes the barrier that is its first operand, and reads any other
BarrierUse = Literal["read", "write", "both", "position"]
# Which half of the encoding names a memory descriptor that the text leaves out. Source: found by comparing the encodings of 370,000 accesses of
# sm_80, sm_86 and sm_89 with the uniform registers nvdisasm's life ranges show them to read.
Descriptor = Literal["low", "high"]


class Opcode(Struct, frozen=True, kw_only=True):
    """Facts about an opcode (with its modifiers, when it comes from :func:`describe_mnemonic`)."""

    name: str  # e.g. ``LDG``.
    description: str  # one plain line; empty for an unknown opcode
    is_known: bool = True  # it is in the table
    pipe: Pipe | None = None  # None where it depends on the architecture or is not known
    memory: MemorySpace | None = None  # None when it accesses none
    access: Access | None = None  # None when it accesses no memory, or only synchronises
    flow: Flow = Flow.NONE  # what it does to control flow
    # what it waits for; None when it waits for nothing but its operands (arriving at a barrier is no wait)
    synchronises: Synchronisation | None = None
    results: int = 1  # number of leading value operands that are written
    # number of predicate operands that may be written; only those before the first value that is read count
    predicate_results: int = 0
    # registers per value operand, in text order, or the name of a law of :mod:`gpa_lsp.code.binary.uses`; missing ones are 1
    widths: tuple[int | str, ...] = ()
    descriptor: Descriptor | None = None  # None when it has none
    predicate_mask: MaskUse | None = None  # None when it has no mask of predicates
    barrier: BarrierUse | None = None  # None when it names no convergence barrier
    has_pc_target: bool = False  # the last number of its text is an address computed from the pc


@cache
def list_pc_target_opcodes() -> tuple[str, ...]:
    """The bare opcodes whose text may end with an address computed from the pc."""
    return tuple(name for name, entry in _read_table().items() if "relative" in entry)


@lru_cache(maxsize=8192)
def describe_mnemonic(mnemonic: str) -> Opcode:
    """The facts of an opcode with its modifiers.

    An opcode that is not in the table is taken to write its first register operand, one register wide, and to read all others; its
    ``is_known`` is False.

    >>> describe_mnemonic("LDG.E.64").access
    <Access.LOAD: 'load'>
    >>> describe_mnemonic("IMAD.WIDE.U32").widths
    (2, 1, 1, 2)
    >>> describe_mnemonic("FROB.X").is_known
    False
    """
    name, *modifiers = mnemonic.split(".")
    entry = _read_table().get(name)
    if entry is None:
        return Opcode(name=name, description="", is_known=False)
    return _build(name, entry, modifiers)


def _build(name: str, entry: Mapping[str, Any], modifiers: Sequence[str]) -> Opcode:
    rules = (rule for rule in entry.get("rules", ()) if _occur_in_order(rule["with"], modifiers))
    required = entry.get("relative")
    fields: dict[str, Any] = {**entry, **next(rules, {}), "name": name, "description": entry["says"]}
    fields["has_pc_target"] = required is not None and all(one in modifiers for one in required)
    if "flow" in fields:
        fields["flow"] = Flow[fields["flow"].upper()].value
    return convert(fields, Opcode)


def _occur_in_order(wanted: Sequence[str], modifiers: Sequence[str]) -> bool:
    left = iter(modifiers)
    return all(one in left for one in wanted)


@cache
def _read_table() -> dict[str, dict[str, Any]]:
    return read_own_table(Path(__file__).with_name(_TABLE))


_WORDS_TABLE = "opcode_words.toml"
_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)\Z")

_PIPES: Mapping[Pipe, str] = {
    Pipe.ALU: "integer and logic", Pipe.FMA: "multiplication (FMA)", Pipe.FP16: "16-bit floats",
    Pipe.FP64: "64-bit floats", Pipe.TENSOR: "tensor cores", Pipe.XU: "special functions (XU)",
    Pipe.LSU: "loads and stores (LSU)", Pipe.TEXTURE: "textures", Pipe.UNIFORM: "uniform datapath",
    Pipe.CONTROL: "control",
}  # fmt: skip


class MnemonicWords(Struct, frozen=True, kw_only=True):
    """Description of a mnemonic for a reader of SASS."""

    sentence: str  # what it does; empty for an opcode that is not known
    kind: str  # a few words; empty for an opcode that is not known
    pipe: str  # the unit that executes it; empty where that depends on the architecture, or is not known
    waits: str  # how its latency and its costs show in a profile; empty where there is nothing to say
    # the figure of an architecture's throughput table that says how often its unit takes one; None where none does
    rate: str | None
    # (modifier, what it says) in the order of the mnemonic; uncertain ones are left out
    modifiers: tuple[tuple[str, str], ...]


@lru_cache(maxsize=4096)
def describe_words(mnemonic: str) -> MnemonicWords:
    """The words for an opcode with its modifiers.

    >>> words = describe_words("LDG.E.64.CONSTANT")
    >>> words.sentence, words.kind, words.pipe
    ('Loads from global memory.', 'global memory load', 'loads and stores (LSU)')
    >>> words.modifiers[0]
    ('E', '64-bit address')
    >>> describe_words("HGMMA.64x128x16.F32").modifiers
    (('64x128x16', '64×128 by 16 matrices'), ('F32', '32-bit floats'))
    """
    opcode = describe_mnemonic(mnemonic)
    kind = _kinds().get(opcode.name)
    known = _vocabularies().get(opcode.name, ())
    explained = ((modifier, _explain(modifier, known)) for modifier in mnemonic.split(".")[1:])
    return MnemonicWords(
        sentence=opcode.description,
        kind=kind["title"] if kind else "",
        pipe=_PIPES[opcode.pipe] if opcode.pipe else "",
        waits=kind["waits"] if kind else "",
        rate=kind.get("rate") if kind else None,
        modifiers=tuple((modifier, words) for modifier, words in explained if words),
    )


def _explain(modifier: str, vocabularies: tuple[Mapping[str, str], ...]) -> str:
    for words in vocabularies:
        if modifier in words:
            return words[modifier]
    shape = _SHAPE.match(modifier) if vocabularies else None
    return f"{shape[1]}×{shape[2]} by {shape[3]} matrices" if shape else ""


@lru_cache(maxsize=256)
def describe_special_register(name: str) -> str:
    """Description of a special register's value; empty where that is uncertain.

    >>> describe_special_register("SR_TID.X")
    'index of the thread in its block, x'
    """
    known: Mapping[str, str] = read_table()["special_registers"]
    bare, _, component = name.partition(".")
    words = known.get(bare, "")
    return f"{words}, {component.lower()}" if words and component else words


@cache
def _kinds() -> Mapping[str, Mapping[str, Any]]:
    """Opcode → its kind."""
    return {opcode: kind for kind in read_table()["kinds"].values() for opcode in kind["opcodes"]}


@cache
def _vocabularies() -> Mapping[str, tuple[Mapping[str, str], ...]]:
    """Opcode → its vocabularies, in the table's order."""
    found: dict[str, tuple[Mapping[str, str], ...]] = {}
    for vocabulary in read_table()["modifiers"].values():
        for opcode in vocabulary["opcodes"]:
            found[opcode] = (*found.get(opcode, ()), vocabulary["words"])
    return found


@cache
def read_table() -> dict[str, Any]:
    """The table as it is written."""
    return read_own_table(Path(__file__).with_name(_WORDS_TABLE))
