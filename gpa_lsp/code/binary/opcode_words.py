"""What people are told about opcodes, read from ``opcode_words.toml`` beside the sentences of ``opcodes.toml``."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import tomli
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Pipe, describe_mnemonic

_TABLE = "opcode_words.toml"
_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)\Z")

_PIPES: Mapping[Pipe, str] = {
    Pipe.ALU: "integer and logic",
    Pipe.FMA: "multiplication (FMA)",
    Pipe.FP16: "16-bit floats",
    Pipe.FP64: "64-bit floats",
    Pipe.TENSOR: "tensor cores",
    Pipe.XU: "special functions (XU)",
    Pipe.LSU: "loads and stores (LSU)",
    Pipe.TEXTURE: "textures",
    Pipe.UNIFORM: "uniform datapath",
    Pipe.CONTROL: "control",
}


class MnemonicWords(Struct, frozen=True, kw_only=True):
    """What to say about an instruction of some mnemonic."""

    sentence: str  # what it does; empty for an opcode that is not known
    kind: str  # a few words; empty for an opcode that is not known
    pipe: str  # the unit that executes it; empty where that depends on the architecture, or is not known
    waits: str  # how its latency and its costs show in a profile; empty where there is nothing to say
    # the figure of an architecture's throughput table that says how often its unit takes one; None where none does
    rate: str | None
    # (modifier, what it says) in the order of the mnemonic; those nobody is certain of are left out
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
    """What a special register holds; empty where nobody is certain.

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
    return tomli.loads(Path(__file__).with_name(_TABLE).read_text(encoding="utf-8"))
