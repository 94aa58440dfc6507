"""Offsets in constant bank 0 at which the driver puts the facts of a launch, by architecture."""

from msgspec import Struct


class DriverConstants(Struct, frozen=True, kw_only=True):
    """Byte offsets in constant bank 0 of the facts of a launch.

    Source: code that nvcc 12 and 13 make for sm_70 to sm_120 of ``blockDim``, ``gridDim``, local arrays, and
    addresses of these and of constants.
    """

    block: int  # three words, threads of a block
    grid: int  # three words, blocks
    stack: int  # a word, the end of a lane's local memory
    dynamic_shared: int  # a word, bytes of dynamic shared memory
    parameters: int  # the first byte of the parameters
    shared_window: int | None  # two words, generic address of shared memory; None where it is read otherwise
    local_window: int | None  # the same of local memory
    constant_window: int  # two words, generic address of the program's constants (bank 3)
    # places of descriptors of global memory, two words each, which only say that addresses are as they are
    zeros: tuple[int, ...]


_OLD = DriverConstants(
    block=0,
    grid=0xC,
    stack=0x28,
    dynamic_shared=0x2C,
    parameters=0x160,
    shared_window=0x18,
    local_window=0x20,
    constant_window=0x50,
    zeros=(0x114, 0x118),
)
_HOPPER = DriverConstants(
    block=0,
    grid=0xC,
    stack=0x28,
    dynamic_shared=0x2C,
    parameters=0x210,
    shared_window=0x18,
    local_window=0x20,
    constant_window=0xD0,
    zeros=(0x114, 0x208),
)
_BLACKWELL = DriverConstants(
    block=0x360,
    grid=0x370,
    stack=0x37C,
    dynamic_shared=0x16C,
    parameters=0x380,
    shared_window=None,
    local_window=0x2F8,
    constant_window=0x120,
    zeros=(0x358,),
)


def find_driver_constants(sm: int) -> DriverConstants:
    """The offsets for compute capability ``sm``, e.g. 90."""
    return _OLD if sm < 90 else _HOPPER if sm < 100 else _BLACKWELL
