"""Address maps of a kernel's launches, counters by our names, and the refusal of samples taken on other code."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.errors import MismatchError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.profile.model import Launch, LoadedFunction, Metric, Module, Profile
from gpa_lsp.profile.ncu.samples import InstructionCounts, read_instruction_counts

_UNKNOWN_SIZE_BYTES = 1 << 24  # How far a function of unknown size can reach when no other function follows

# A section ends with a jump to itself and NOPs up to the next 128-byte line; counters leave those out. Four times as much, to be safe.
_PADDING_BYTES = 512


class AddressMap(ColumnRecord, frozen=True, kw_only=True):
    """Functions at their load addresses."""

    names: tuple[str, ...]  # mangled names, ascending by address
    starts: npt.NDArray[np.uint64]  # uint64[f], first address of each
    ends: npt.NDArray[np.uint64]  # uint64[f], one past the last address of each

    def locate(self, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Index into ``names`` for each address, int64 of the same shape; -1 for addresses in none of the functions."""
        if not self.names:
            return np.full(addresses.shape, -1, dtype=np.int64)
        index = np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1
        inside = (index >= 0) & (addresses < self.ends[np.maximum(index, 0)])
        return np.where(inside, index, -1)


def build_address_map(launch: Launch, module: Module | None, cubin: Cubin | None) -> AddressMap:
    """Place the functions of a launch's module.

    Args:
        launch: the launch; its ``function_addresses`` are the fallback for modules without a function table.
        module: the loaded module; None when the profile has none.
        cubin: the decoded image, which gives the sizes; None when there is none.

    Raises:
        MismatchError: the module does not hold the kernel, or addresses overlap.
    """
    _refuse_foreign_cubin(launch, cubin)
    if module is None or not module.functions:
        return _build(_name_addresses(launch, cubin), cubin)
    has_namesakes, maps = module.once(_list_loaded)
    if has_namesakes:
        return _build(_name_loaded(module.functions, cubin, launch.function_addresses), cubin)
    key = None if cubin is None else cubin.sha256
    if key not in maps:
        maps[key] = _build(_name_loaded(module.functions, cubin, ()), cubin)
    return maps[key]


def _list_loaded(module: Module) -> tuple[bool, dict[str | None, AddressMap]]:
    """Facts that all launches of a module share.

    Whether some name has several addresses, so that each launch has its own map; and a cache of the maps of other modules, by digest of the cubin.
    """
    names = {function.name for function in module.functions}
    return len(names) < len(module.functions), {}


def _name_loaded(
    functions: Iterable[LoadedFunction], cubin: Cubin | None, own_addresses: Sequence[int]
) -> dict[str, int]:
    """Load addresses by the cubin's names.

    Several local functions of one image can share a linkage name (slow paths of divisions); the cubin tells them apart by section, the loader
    by symbol index. A module that was loaded again has one name at several addresses; those the launch itself names count.
    """
    by_symbol = {function.symbol_index: name for name, function in cubin.functions.items()} if cubin is not None else {}
    addresses: dict[str, int] = {}
    for loaded in functions:
        named = by_symbol.get(loaded.symbol_index) if loaded.symbol_index is not None else None
        same = named is not None and named.split("@")[0] == loaded.name
        name = named if same and named is not None else loaded.name
        if name not in addresses or loaded.address in own_addresses:
            addresses[name] = loaded.address
    return addresses


def _refuse_foreign_cubin(launch: Launch, cubin: Cubin | None) -> None:
    if cubin is not None and launch.mangled_name not in cubin.functions:
        raise MismatchError(
            f"kernel {launch.mangled_name} was measured, but the cubin beside the samples does not contain it",
            place=f"launch {launch.index}",
            remedy="give the cubin of the same build as the samples, or record the report again",
        )


def _build(addresses: Mapping[str, int], cubin: Cubin | None) -> AddressMap:
    order = sorted(addresses.items(), key=lambda item: item[1])
    names = tuple(name for name, _ in order)
    starts = [address for _, address in order]
    ends = []
    for position, name in enumerate(names):
        following = starts[position + 1] if position + 1 < len(starts) else starts[position] + _UNKNOWN_SIZE_BYTES
        function = cubin.functions.get(name) if cubin is not None else None
        ends.append(min(following, starts[position] + function.size_bytes) if function is not None else following)
    return AddressMap(names=names, starts=np.array(starts, dtype=np.uint64), ends=np.array(ends, dtype=np.uint64))


def _name_addresses(launch: Launch, cubin: Cubin | None) -> dict[str, int]:
    """Names for the bare addresses of reports before 2022.2.

    With one address it is the kernel's. With several, each address is given to the only function, among those the kernel can call, whose size
    fits the instructions counted there; an address that fits several functions stays nameless, and its samples are shown as outside the module.
    """
    addresses = sorted(set(launch.function_addresses))
    if len(addresses) == 1:
        return {launch.mangled_name: addresses[0]}
    if not addresses:
        return _place_by_samples(launch)
    if cubin is None:
        return {}
    counted = _read_counted_addresses(launch)
    candidates = list_reachable_functions(cubin, launch.mangled_name)
    named: dict[str, int] = {}
    for position, address in enumerate(addresses):
        following = addresses[position + 1] if position + 1 < len(addresses) else address + _UNKNOWN_SIZE_BYTES
        here = counted[(counted >= address) & (counted < following)]
        reach = int(here.max()) - address + INSTRUCTION_BYTES if len(here) else 0
        fitting = [name for name in candidates if reach <= cubin.functions[name].size_bytes < reach + _PADDING_BYTES]
        if len(fitting) == 1 and fitting[0] not in named:
            named[fitting[0]] = address
    return named


def _place_by_samples(launch: Launch) -> dict[str, int]:
    """The kernel's address where none is stored: that of the lowest counted instruction, since its first instruction is always executed."""
    counted = _read_counted_addresses(launch)
    return {launch.mangled_name: int(counted.min())} if len(counted) else {}


def _read_counted_addresses(launch: Launch) -> npt.NDArray[np.uint64]:
    metric = launch.metrics.get("inst_executed")
    counted: Iterable[int] = (number for number in metric.instance_ids if isinstance(number, int)) if metric else ()
    addresses = np.array(sorted(counted), dtype=np.uint64)
    if len(addresses) == 0 and launch.samples is not None:
        return launch.samples.addresses
    return addresses


def list_reachable_functions(cubin: Cubin, kernel: str) -> list[str]:
    """The functions of an image that a kernel can call, directly, through callees or through a pointer, and itself; sorted."""
    callees: dict[str, set[str]] = {}
    for caller, callee in cubin.calls:
        callees.setdefault(caller, set()).add(callee)
    for callers, reachable in cubin.indirect_calls:
        for caller in callers:
            callees.setdefault(caller, set()).update(reachable)
    for name, function in cubin.functions.items():
        callees.setdefault(name, set()).update(function.call_symbols.values())
    reached, frontier = {kernel}, [kernel]
    while frontier:
        new = callees.get(frontier.pop(), set()) - reached
        reached |= new
        frontier.extend(new)
    return sorted(name for name in reached if name in cubin.functions)


# How far behind the module's last function an address still counts as an overrun of that function and not as foreign code
_OVERRUN_BYTES = 4096

# Our name → the profiler's names of the metric, newest first; the first that a launch has is read.
#
# * ``thread_executions``: threads that executed the instruction; ``thread_executions_true``: of these, those whose guard held.
# * ``divergent_branch_targets``: executions of a branch whose threads parted.
# * ``global_tag_requests``: 128-byte lines that global accesses asked of L1, per warp and instruction.
# * ``global_sectors``: 32-byte sectors that global accesses asked of L2 if L1 held none of them, and the least that could do (``_ideal``).
# * ``local_sectors``: the same for local memory.
# * ``shared_wavefronts``: passes through shared memory, and the least that could do.
#
# Source: metric names of real reports, 2020.3 to 2026.2. In 13 reports the sectors of all instructions add up to the four
# ``l1tex__t_sectors_pipe_lsu_mem_global_op_…`` aggregates: exactly from compute capability 8.0 on, within 12 % on 7.0 and where copies to shared
# memory or code that spins is among them. 2020.3 calls lines and wavefronts sectors: one per shared access of 32 neighbouring words.
COUNTERS: dict[str, tuple[str, ...]] = {
    "thread_executions": ("thread_inst_executed",),
    "thread_executions_true": ("thread_inst_executed_true",),
    "divergent_branch_targets": ("smsp__branch_targets_threads_divergent",),
    "global_tag_requests": ("memory_l1_tag_requests_global", "memory_l1_sectors_global"),
    "global_sectors": ("memory_l2_theoretical_sectors_global", "memory_l2_sectors_global"),
    "global_sectors_ideal": ("memory_l2_theoretical_sectors_global_ideal", "memory_l2_sectors_global_ideal"),
    "local_sectors": ("memory_l2_theoretical_sectors_local", "memory_l2_sectors_local"),
    "shared_wavefronts": ("memory_l1_wavefronts_shared", "memory_l1_sectors_shared"),
    "shared_wavefronts_ideal": ("memory_l1_wavefronts_shared_ideal", "memory_l1_sectors_shared_ideal"),
}


class PlacedLaunch(ColumnRecord, frozen=True, kw_only=True):
    """One launch with its addresses mapped to functions."""

    launch: Launch  # as read
    addresses: AddressMap  # where the module's functions were during this launch
    # uint64[m], addresses of ``inst_executed``; empty where it was not collected
    executed_addresses: npt.NDArray[np.uint64]
    executions: npt.NDArray[np.int64]  # int64[m], warp-level executions of each
    # name of :mod:`gpa_lsp.kernel.place` → its addresses and counts; those that were not collected are missing
    counters: Mapping[str, InstructionCounts]

    def list_touched(self) -> npt.NDArray[np.uint64]:
        """Addresses with a sample or an execution, ascending, unique."""
        samples = self.launch.samples
        sampled = samples.addresses if samples is not None else np.zeros(0, dtype=np.uint64)
        return find_distinct(np.concatenate([sampled, self.executed_addresses[self.executions > 0]]))


class PlacedKernel(Struct, frozen=True, kw_only=True):
    """A kernel before its code is decoded."""

    # all of one kernel; a module can be loaded again between them, so each has its own addresses. Empty for code without a profile.
    launches: tuple[PlacedLaunch, ...]
    module: Module | None  # the loaded image; None when the profile has none
    cubin: Cubin | None  # the decoded image; None when there is none
    needed: tuple[str, ...]  # mangled names of the functions with anything sampled or executed, the kernel included

    @property
    def is_split(self) -> bool:
        """Whether every launch with samples separates those without issue; the sum over only some launches would be meaningless."""
        sampled = [one.launch.samples for one in self.launches if one.launch.samples is not None]
        return all(samples.latency_samples is not None or not samples.total_samples for samples in sampled)


def place_kernel(group: tuple[Launch, ...], profile: Profile, cubins: Mapping[int, Cubin]) -> PlacedKernel:
    """Map the addresses of the launches of one kernel to functions.

    Args:
        group: launches of one kernel, at least one.

    Raises:
        MismatchError: the samples cannot have been taken on this cubin.
    """
    module_id = group[0].module_id
    module = profile.modules.get(module_id) if module_id is not None else None
    cubin = cubins.get(module_id) if module_id is not None else None
    # An aggregate knows the mean of its launches; beside other launches it would weigh as one of them.
    launches = tuple(
        _place_launch(launch, module, cubin, with_counters=launch.aggregate is None or len(group) == 1)
        for launch in group
    )
    needed = {group[0].mangled_name}
    for placed in launches:
        _refuse_misfit(placed, cubin)
        located = placed.addresses.locate(placed.list_touched())
        needed.update(placed.addresses.names[index] for index in find_distinct(located[located >= 0]).tolist())
    return PlacedKernel(
        launches=launches,
        module=module,
        cubin=cubin,
        needed=tuple(sorted(needed)),
    )


def _place_launch(launch: Launch, module: Module | None, cubin: Cubin | None, *, with_counters: bool) -> PlacedLaunch:
    executed = read_instruction_counts(launch.metrics, "inst_executed") if with_counters else None
    addresses, executions = executed or (np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))
    return PlacedLaunch(
        launch=launch,
        addresses=build_address_map(launch, module, cubin),
        executed_addresses=addresses,
        executions=executions,
        counters=read_counters(launch.metrics) if with_counters else {},
    )


def _lies_between_instructions(placed: PlacedLaunch, touched: npt.NDArray[np.uint64], cubin: Cubin) -> bool:
    """Whether any address in a function whose code is known is not one of its instructions', callees included."""
    with_code = np.array([name in cubin.functions for name in placed.addresses.names], dtype=np.bool_)
    located = placed.addresses.locate(touched)
    known = located >= 0
    known[known] = with_code[located[known]]
    offsets = touched[known] - placed.addresses.starts[located[known]]
    return bool((offsets % np.uint64(INSTRUCTION_BYTES)).any())


def _refuse_misfit(placed: PlacedLaunch, cubin: Cubin | None) -> None:
    """Refuse samples that cannot have been taken on this code.

    Three facts give a foreign cubin away: instructions start every 16 bytes; nothing runs between the end of the kernel and the start of the
    module's next function; and a launch gets at least the registers its kernel was compiled for (more where a callee needs more, or below the
    allocation's minimum of 16). Samples far outside the module are legitimate (driver code) and kept.
    """
    launch, names = placed.launch, placed.addresses.names
    if cubin is None or launch.mangled_name not in names:
        return
    position = names.index(launch.mangled_name)
    start, end = int(placed.addresses.starts[position]), int(placed.addresses.ends[position])
    touched = placed.list_touched()
    inside = touched[(touched >= start) & (touched < end)]
    place = f"launch {launch.index}, kernel {launch.mangled_name}"
    remedy = "the cubin and the samples are not of the same build; record the report again"
    if _lies_between_instructions(placed, touched, cubin):
        raise MismatchError("samples lie between instructions of the cubin", place=place, remedy=remedy)
    following = int(placed.addresses.starts[position + 1]) if position + 1 < len(names) else end + _OVERRUN_BYTES
    beyond = touched[(touched >= end) & (touched < following)]
    if len(beyond):
        reach = int(beyond.max()) - start
        message = f"samples lie up to {reach} bytes into a kernel that the cubin says is {end - start} bytes long"
        raise MismatchError(message, place=place, remedy=remedy)
    launched, compiled = (
        launch.read_number("launch__registers_per_thread"),
        cubin.functions[launch.mangled_name].registers,
    )
    if launched is not None and compiled is not None and launched < compiled:
        message = (
            f"launched with {format_count(launched)} registers per thread, but the cubin's kernel needs {compiled}"
        )
        raise MismatchError(message, place=place, remedy=remedy)
    if launch.samples is not None and launch.samples.total_samples and not len(inside):
        raise MismatchError("no sample lies in the kernel that was measured", place=place, remedy=remedy)


def read_counters(metrics: Mapping[str, Metric]) -> dict[str, InstructionCounts]:
    """The counters a launch has, by our names."""
    found = {}
    for name, aliases in COUNTERS.items():
        columns = next((read_instruction_counts(metrics, alias) for alias in aliases if alias in metrics), None)
        if columns is not None:
            found[name] = columns
    return found
