"""Many images disassembled in one go: starting nvdisasm takes most of the time."""

from collections.abc import Sequence
from functools import cache

from msgspec.structs import replace

from gpa_lsp.code.binary.disassembler import disassemble
from gpa_lsp.code.binary.model import Cubin, Instructions
from tests.binary.seeds import find_fixture_cubins, read_fixture


def disassemble_together(cubins: Sequence[Cubin]) -> list[dict[str, Instructions]]:
    """The functions of each image, with one run of nvdisasm per architecture."""
    found: list[dict[str, Instructions]] = [{} for _ in cubins]
    for sm in {cubin.sm for cubin in cubins}:
        members = [(index, cubin) for index, cubin in enumerate(cubins) if cubin.sm == sm]
        merged = {f"{index}/{name}": one for index, cubin in members for name, one in cubin.functions.items()}
        for key, instructions in disassemble(replace(members[0][1], functions=merged), merged).items():
            index, _, name = key.partition("/")
            found[int(index)][name] = instructions
    return found


@cache
def disassemble_fixtures() -> dict[str, dict[str, Instructions]]:
    """Hash of each fixture image → its functions, disassembled."""
    cubins = [read_fixture(path) for path in find_fixture_cubins()]
    return {cubin.sha256: found for cubin, found in zip(cubins, disassemble_together(cubins), strict=True)}
