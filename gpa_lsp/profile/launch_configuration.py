"""Launch configurations, shared by profiles, reports and histories."""

from math import prod

from msgspec import Struct

_Dim3 = tuple[int, int, int]


class LaunchConfiguration(Struct, frozen=True, kw_only=True):
    """Grid, block, registers and shared memory of a launch."""

    grid: _Dim3 | None  # blocks in x, y, z; None when unknown
    block: _Dim3 | None  # threads in x, y, z; None when unknown
    registers_per_thread: int | None  # None when unknown
    shared_static_bytes: int | None  # per block; None when unknown
    shared_dynamic_bytes: int | None  # per block; None when unknown

    @property
    def blocks(self) -> int:
        """Blocks of the grid; 0 when the launch failed, or when unknown."""
        return prod(self.grid or (0,))

    @property
    def threads(self) -> _Dim3:
        """Threads of one block in x, y, z; zeros when unknown."""
        return self.block or (0, 0, 0)

    @property
    def threads_per_block(self) -> int:
        """Threads of one block; 0 when unknown."""
        return prod(self.threads)

    @property
    def all_threads(self) -> int:
        """Threads of all blocks; 0 when unknown."""
        return self.blocks * self.threads_per_block

    @property
    def warps_per_block(self) -> int:
        """Warps of one block; the last one may be partly filled."""
        return -(-self.threads_per_block // 32)
