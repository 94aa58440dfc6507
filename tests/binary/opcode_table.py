"""The table of opcodes as it is written, and the instructions that it does not know."""

import tomllib
from importlib.resources import files
from typing import Any

from gpa_lsp.code.binary.model import Instructions
from gpa_lsp.code.binary.opcodes import describe_mnemonic

TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    files("gpa_lsp.code.binary").joinpath("opcodes.toml").read_text("utf-8")
)


def find_unknown_opcodes(instructions: Instructions) -> tuple[str, ...]:
    """The bare opcodes that the table does not know, in order of appearance; what they read and write is a guess."""
    opcodes = (describe_mnemonic(mnemonic) for mnemonic in instructions.mnemonics)
    return tuple(dict.fromkeys(opcode.name for opcode in opcodes if not opcode.is_known))
