"""What a kernel was launched with, and the aggregates of its launches."""

from msgspec import Struct

from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.model import Dim3


class LaunchFacts(Struct, frozen=True, kw_only=True):
    """The longest launch of a kernel. Counts are None when the profile does not say."""

    grid: Dim3  # blocks in x, y, z
    block: Dim3  # threads in x, y, z
    registers_per_thread: int | None  # as allocated by the compiler
    shared_static_bytes: int | None  # per block
    shared_dynamic_bytes: int | None  # per block
    sm_count: int | None  # multiprocessors the kernel could use
    duration_ns: float | None  # of this launch; of an aggregate the mean

    @property
    def blocks(self) -> int:
        """Blocks of the grid; 0 when the launch failed."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        """Warps of one block; the last one may be partly filled."""
        return -(-self.threads_per_block // 32)


def gather_launch_facts(kernel: Kernel) -> LaunchFacts | None:
    """The facts of a kernel's longest launch.

    None for code without a profile, where every launch failed or had no threads, and where the profile does not say with how many blocks and
    threads it was launched.
    """
    launch = kernel.longest_launch
    if launch is None or launch.grid is None or launch.block is None or min(launch.block) < 1:
        return None
    function = kernel.functions[0].function
    registers = launch.read_count("launch__registers_per_thread")
    return LaunchFacts(
        grid=launch.grid,
        block=launch.block,
        registers_per_thread=registers if registers is not None or function is None else function.registers,
        shared_static_bytes=launch.read_count("launch__shared_mem_per_block_static"),
        shared_dynamic_bytes=launch.read_count("launch__shared_mem_per_block_dynamic"),
        sm_count=launch.read_count("launch__sm_count") or kernel.device.sm_count or None,
        duration_ns=launch.read_number("gpu__time_duration.sum"),
    )
