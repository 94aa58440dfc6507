"""What keeps a kernel from having more registers, and how many more it could have."""

from bisect import bisect_right

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, say
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy

_COMPILER_STEP = 8  # ptxas raises a bound to a multiple of this

# A kernel with so many registers less than the architecture's most is at that limit: pairs need an even start
_HIGHEST_TO_THE_LIMIT = 2


class RegisterLimits(Struct, frozen=True, kw_only=True):
    """Registers of a kernel that spills."""

    registers: int  # per thread, now
    most_registers: int  # per thread that the architecture can name
    # threads per block that a launch bound of exactly these registers allows; None when no whole number of warps does
    bound_threads: int | None
    block_threads: int  # of the launch
    most_for_block: int  # registers per thread with which one block of the launch still fits
    # registers per thread with which as many warps stay resident as now; None when the launch does not say enough
    most_for_residency: int | None
    resident_warps: int | None  # per SM, now; None when the launch does not say enough

    @property
    def is_bounded_by_flag(self) -> bool:
        """A compiler that spills below the architecture's limit was told to."""
        return self.registers < self.most_registers - _HIGHEST_TO_THE_LIMIT and self.most_for_block > self.registers

    def advise(self, spilled: int) -> Sentence:
        """Which bound to change, for that many values of 4 bytes: a sentence without its full stop."""
        registers = count(self.registers, "register")
        if not self.is_bounded_by_flag:
            if self.registers >= self.most_registers - _HIGHEST_TO_THE_LIMIT:
                return say("All {registers} of a thread are in use, so no flag helps", registers=registers)
            return say(
                "Blocks of {threads} leave {registers} per thread (smaller ones more), so no flag helps",
                registers=registers,
                threads=count(self.block_threads, "thread"),
            )
        return say(
            "The compiler is held to {registers} per thread{bound}, for blocks of {threads}: declare {launch_bounds} or raise {option} to "
            "about {wanted}{cost}",
            threads=count(self.block_threads),
            registers=registers,
            bound=say(" by a bound of {threads}", threads=count(self.bound_threads, "thread"))
            if self.bound_threads
            else NOTHING,
            launch_bounds=Code(text=f"__launch_bounds__({self.block_threads})"),
            option=Code(text="-maxrregcount"),
            wanted=count(min(self.registers + spilled, self.most_for_block)),
            cost=self._describe_cost(),
        )

    def _describe_cost(self) -> Sentence:
        """What more registers do to the resident warps; empty where the launch does not say enough."""
        if self.most_for_residency is None or self.resident_warps is None:
            return NOTHING
        warps = count(self.resident_warps, "warp")
        if self.most_for_residency > self.registers:
            return say(" (up to {most} keep {warps} per SM resident)", most=count(self.most_for_residency), warps=warps)
        return say(" (any more leave fewer than {warps} per SM resident)", warps=warps)


def find_register_limits(subject: Subject) -> RegisterLimits | None:
    """The limits of a kernel; None without a launch, its registers, or a table of the architecture."""
    launch, architecture = subject.launch, subject.kernel.architecture
    if launch is None or architecture is None or not launch.registers_per_thread or launch.threads_per_block < 1:
        return None
    registers, threads = launch.registers_per_thread, launch.threads_per_block
    residency = _find_residency(subject, architecture)
    return RegisterLimits(
        registers=registers,
        most_registers=architecture.occupancy.max_registers_per_thread.value,
        bound_threads=_find_bound(architecture, registers),
        block_threads=threads,
        most_for_block=count_bound_registers(architecture, threads),
        most_for_residency=None if residency is None else residency[0],
        resident_warps=None if residency is None else residency[1],
    )


def count_bound_registers(architecture: Architecture, threads: int) -> int:
    """Registers a thread can have when blocks of so many threads must fit.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> count_bound_registers(find_architecture((8, 0)), 1024), count_bound_registers(find_architecture((8, 0)), 256)
    (64, 255)
    """
    rules = architecture.occupancy
    allowed = rules.registers_per_sm.value // max(threads, 1) // _COMPILER_STEP * _COMPILER_STEP
    return int(min(allowed, rules.max_registers_per_thread.value))


def _find_bound(architecture: Architecture, registers: int) -> int | None:
    """The largest block that a launch bound could have named to get so few registers."""
    warp = architecture.sm.warp_size_threads.value
    largest = architecture.occupancy.max_threads_per_block.value
    fitting = [
        threads
        for threads in range(warp, largest + 1, warp)
        if count_bound_registers(architecture, threads) == registers
    ]
    return max(fitting, default=None)


def _find_residency(subject: Subject, architecture: Architecture) -> tuple[int, int] | None:
    """Most registers that keep the resident warps, and those warps."""
    launch = subject.launch
    if launch is None or not launch.registers_per_thread:
        return None
    if launch.shared_static_bytes is None or launch.shared_dynamic_bytes is None:
        return None
    shared = launch.shared_static_bytes + launch.shared_dynamic_bytes

    def count_warps(registers: int) -> int:
        block = BlockShape(threads=launch.threads_per_block, registers_per_thread=registers, shared_bytes=shared)
        return find_occupancy(architecture, block).warps_per_sm

    now = count_warps(launch.registers_per_thread)
    highest = architecture.occupancy.max_registers_per_thread.value
    # More registers never leave more warps.
    counts = range(launch.registers_per_thread, highest + 1)
    kept = counts[: bisect_right(counts, -now, key=lambda count: -count_warps(count))]
    return max(kept, default=launch.registers_per_thread), now
