"""What a kernel was launched with, and the aggregates of its launches."""

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.profile.model import Dim3
from gpa_lsp.rows.model import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """The longest launch of a kernel. Counts are None when the profile does not say.

    Attributes:
        grid: blocks in x, y, z.
        block: threads in x, y, z.
        registers_per_thread: as allocated by the compiler.
        shared_static_bytes: per block.
        shared_dynamic_bytes: per block.
        sm_count: multiprocessors the kernel could use.
        duration_ns: of this launch; of an aggregate the mean.
    """

    grid: Dim3
    block: Dim3
    registers_per_thread: int | None
    shared_static_bytes: int | None
    shared_dynamic_bytes: int | None
    sm_count: int | None
    duration_ns: float | None

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
