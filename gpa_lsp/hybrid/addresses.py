"""Arrays and variables in a virtual address space (Section III-B3): :func:`place_arguments`. Nothing is allocated."""

from collections.abc import Mapping

from gpa_lsp.launches.build import check_arguments
from gpa_lsp.launches.launch import (
    Argument,
    ArrayArgument,
    LaunchDescription,
    ScalarArgument,
    StructArgument,
    TextureArgument,
)
from gpa_lsp.launches.scalars import pack_scalar
from gpa_lsp.ptx.model import PtxFunction, PtxModule, Space

_FIRST_ADDRESS = 1 << 32
_ALIGNMENT = 256


def place_arguments(
    module: PtxModule, function: PtxFunction, launch: LaunchDescription
) -> tuple[bytes, Mapping[str, int]]:
    """Parameters with addresses in them, and the addresses of the module's variables: arrays behind each other, in the order of the arguments.

    Raises:
        InputError: an argument is missing, too many, or of another size than its parameter.
    """
    arguments = check_arguments(module, function, launch)
    end = _FIRST_ADDRESS
    addresses: dict[str, int] = {}
    for variable in module.variables.values():
        if variable.space in (Space.GLOBAL, Space.CONST):
            addresses[variable.name] = end
            end += -(-variable.size_bytes // _ALIGNMENT) * _ALIGNMENT
    for variable in function.shared:
        addresses[variable.name] = variable.offset_bytes
    places: dict[str, int] = {}
    content = bytearray(max((one.offset_bytes + one.size_bytes for one in function.parameters), default=0))
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        for offset, one in _list_members(argument, parameter.offset_bytes):
            if isinstance(one, ScalarArgument):
                packed = pack_scalar(one.value, one.type)
            elif isinstance(one, TextureArgument):
                continue  # a kernel that reads textures is refused
            else:
                name = one.alias_of or one.name
                if name not in places:
                    places[name] = end
                    end += -(-one.count * one.type.bytes // _ALIGNMENT) * _ALIGNMENT
                packed = (places[name] + one.offset_elements * one.type.bytes).to_bytes(8, "little")
            content[offset : offset + len(packed)] = packed
    return bytes(content), addresses


def _list_members(
    argument: Argument, offset: int
) -> list[tuple[int, ScalarArgument | ArrayArgument | TextureArgument]]:
    if isinstance(argument, StructArgument):
        return [(offset + at, member) for at, member in argument.members]
    return [(offset, argument)]
