"""From absolute instruction addresses to functions and offsets.

A loaded module's functions lie apart from each other at addresses the driver chose. Reports of Nsight Compute 2022.2 and later store them by
name; older ones store only the addresses of the kernel and its callees, without names.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin
from gpa_lsp.foundation.errors import MismatchError
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.profile.model import Launch, LoadedFunction, Module

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
    """What all launches of a module share.

    Whether some name has several addresses, so that each launch says which ones are its own, else digest of the cubin → where its functions are.
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
    """Without any stored address, the kernel starts at the lowest counted instruction: a kernel's first instruction is always executed."""
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
