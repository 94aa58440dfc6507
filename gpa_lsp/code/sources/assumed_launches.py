"""Launches of host code whose shape depends on the program's input, with that input assumed: :func:`find_assumed_launches`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from msgspec.structs import replace

from gpa_lsp.code.sources.host_inputs import OTHER, AssumedInputs
from gpa_lsp.code.sources.host_launches import find_host_launches, read_launches
from gpa_lsp.code.sources.host_values import HostArgument, HostLaunch, Number

# Sizes to try, largest first, until launches are small enough
_SIZES = (1 << 20, 1 << 18, 65536, 16384, 4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 8)
# Threads of a launch: enough to fill any GPU, and few enough to be emulated
USUAL_THREADS = 1 << 20
# Value of all inputs while one is probed for its effect on the grid, and value of the probed one
_PROBED, _SHRUNK = 64, 16
_LARGE = 4096  # Value of all inputs while those that did not change the grid are probed once more
_MOST_PROBED = 8
# Inputs that make a grid smaller (filters) are taken to be this part of the size of an image or a volume
_FILTER_SHARE = 4
_MOST_BYTES = 64 << 20  # Of one array


def find_assumed_launches(
    file: str,
    text: str,
    included: tuple[tuple[str, str], ...] = (),
    defined: tuple[str, ...] = (),
    *,
    most_threads: int = USUAL_THREADS,
    told: tuple[tuple[str, Number], ...] = (),
) -> tuple[HostLaunch, ...]:
    """The launches of :func:`~.host_launches.find_host_launches`, with unknown values filled in as if the program had read certain numbers.

    Only the inputs are assumed: arrays and grid are as large as the program makes them from these.

    Args:
        file: as there.
        text: as there.
        included: as there.
        defined: as there.
        most_threads: of a launch whose grid depends on inputs; below :data:`USUAL_THREADS` also the largest input that shapes no grid.
        told: as there; only the other inputs are assumed.

    >>> text = "int main(int c, char **v) { int n = atoi(v[1]); float *p; cudaMalloc(&p, n * n * 4); k<<<dim3(n / 4, n / 4), dim3(4, 4)>>>(p, n); }"
    >>> (launch,) = find_assumed_launches("k.cu", text)
    >>> launch.grid, [one.size_bytes or one.value for one in launch.arguments], launch.inputs
    ((256, 256, 1), [4194304, 1024], (('v[1] (n)', 1024),))
    """
    known = find_host_launches(file, text, included, defined, told=told)
    if known and all(map(_is_whole, known)):
        return known
    found = known
    for size in _SIZES:
        launches, inputs, depends = _read_as_if(file, text, included, defined, size=size, told=told)
        found = tuple(_merge(known, launches, inputs))
        if not depends or all(_is_small(one, most_threads) for one in found):
            break
    return found


# Inputs by their effect on grids, each named by the place it is read from: sizes, which a grid covers or which are sizes by their names; counts, each
# one more of which is a block more (images of a batch), in grids that also cover sizes; filters, which make a grid smaller; and, with
# their values, those whose names are of sizes but that leave a grid no block where they are large (heights of the pyramids of tiles that overlap).
_Roles = tuple[frozenset[str], tuple[str, ...], tuple[str, ...], tuple[tuple[str, int], ...]]
# One walk through a text: its launches, the inputs that were read, and whether any of these is a size, count or filter
_Read = tuple[tuple[HostLaunch, ...], tuple[tuple[str, Number], ...], bool]


@lru_cache(maxsize=64)
def _read_as_if(
    file: str,
    text: str,
    included: tuple[tuple[str, str], ...],
    defined: tuple[str, ...],
    *,
    size: int,
    told: tuple[tuple[str, Number], ...],
) -> _Read:
    """Read the launches with all inputs that are sizes set to ``size``."""
    sizes, counts, filters, heights = _find_roles(file, text, included, defined)
    values = dict.fromkeys(counts, min(size, OTHER))
    values |= dict.fromkeys(filters, max(1, min(OTHER, size // _FILTER_SHARE))) | dict(heights)
    inputs = AssumedInputs(size=size, sizes=sizes, values=values, told=dict(told))
    launches = read_launches(file, text, included, defined, inputs)
    return launches, inputs.describe(), bool(sizes or values)


@lru_cache(maxsize=16)
def _find_roles(file: str, text: str, included: tuple[tuple[str, str], ...], defined: tuple[str, ...]) -> _Roles:
    """Find the roles of inputs by probing their effect on the grids; by their names where they have none."""
    inputs = AssumedInputs()
    read_launches(file, text, included, defined, inputs)
    named = inputs.find_sizes()
    whole = [source for source, value in inputs.given.items() if isinstance(value, int)]
    if not 1 < len(whole) <= _MOST_PROBED:
        return named, (), (), ()

    def count(changed: Mapping[str, int], others: int = _PROBED) -> int:
        probe = AssumedInputs(sizes=frozenset(), values={**dict.fromkeys(whole, others), **changed})
        return sum(one.threads for one in read_launches(file, text, included, defined, probe))

    usual = count({})
    shrunk = {source: count({source: _SHRUNK}) for source in whole}
    filters = tuple(source for source in whole if shrunk[source] > usual)
    shaping = [source for source in whole if shrunk[source] < usual]
    small = dict.fromkeys(filters, 1)
    counts = tuple(source for source in shaping if count({**small, source: 1}) < count({**small, source: 2}))
    if len(counts) == len(shaping):
        counts = ()
    idle = [source for source in whole if source in named and shrunk[source] in (0, usual)]
    most = count({}, _LARGE) if idle else 0
    tried = ((source, value) for source in idle for value in (OTHER, 2) if count({source: value}, _LARGE) > most)
    heights = tuple(dict(reversed(tuple(tried))).items())  # of two values that do, the larger
    return (named | set(shaping)).difference(counts, filters, dict(heights)), counts, filters, heights


def _is_whole(launch: HostLaunch) -> bool:
    """Whether the text alone decides all of a launch, but for pointers to memory that it does not allocate."""
    parts = launch.grid, launch.block, launch.shared_bytes
    return None not in parts and not any(map(_is_open, launch.arguments))


def _is_open(one: HostArgument) -> bool:
    return one.size_bytes is None if one.is_array else one.value is None


def _is_small(launch: HostLaunch, most_threads: int) -> bool:
    """Whether threads and arrays that depend on inputs are within the limits."""
    arrays = [one.size_bytes or 0 for one in launch.arguments if one.is_guess]
    is_shaped = not launch.guessed.isdisjoint(("grid", "block"))
    # numbers that shape no grid may be how long a loop is: they matter where fewer than usual are asked for
    numbers = [one.value for one in launch.arguments if one.is_guess and isinstance(one.value, int)]
    work = launch.threads if is_shaped else max(numbers, default=0) if most_threads < USUAL_THREADS else 0
    return work <= most_threads and max(arrays, default=0) <= _MOST_BYTES


def find_place(launch: HostLaunch) -> tuple[str, int, str]:
    """Key of a launch in its text: file, line and kernel."""
    return launch.file, launch.line, launch.kernel


def _merge(
    known: Sequence[HostLaunch], assumed: Sequence[HostLaunch], inputs: tuple[tuple[str, Number], ...]
) -> Iterator[HostLaunch]:
    """Each known launch completed from the assumed one at the same place; then those that only the assumed walk has.

    Where a loop runs as often as an input says, only its first launch is known: one that is larger stands beside it.
    """
    others = {place: list(some) for place, some in groupby(sorted(assumed, key=find_place), key=find_place)}
    largest: dict[tuple[str, int, str], int] = {}
    for launch in known:
        place = find_place(launch)
        fitting = [one for one in others.get(place, ()) if _agrees(launch, one)]
        other = min(fitting, key=lambda one: (one.is_assumed, -one.threads), default=None)
        merged = launch if other is None or _is_whole(launch) else _fill(launch, other, inputs)
        largest[place] = max(merged.threads, largest.get(place, 0))
        yield merged
    for one in sorted(assumed, key=lambda one: -one.threads if find_place(one) in largest else 0):
        place = find_place(one)
        if place in largest and (one.threads <= largest[place] or one.is_assumed):
            continue
        if place in largest:
            largest[place] = one.threads
        nothing = replace(one, grid=None, block=None, shared_bytes=None, arguments=tuple(map(_empty, one.arguments)))
        yield _fill(nothing, one, inputs)


def _agrees(launch: HostLaunch, other: HostLaunch) -> bool:
    """Whether all that is known of a launch is the same in another."""
    given = zip(launch.arguments, other.arguments, strict=False)
    is_same = launch.template_arguments == other.template_arguments and launch.is_assumed <= other.is_assumed
    return (
        is_same
        and launch.grid in (None, other.grid)
        and launch.block in (None, other.block)
        and launch.shared_bytes in (None, other.shared_bytes)
        and all(one.value in (None, two.value) and one.size_bytes in (None, two.size_bytes) for one, two in given)
    )


def _empty(one: HostArgument) -> HostArgument:
    return replace(one, value=None, size_bytes=None, members=())


def _fill(launch: HostLaunch, other: HostLaunch, inputs: tuple[tuple[str, Number], ...]) -> HostLaunch:
    """A launch with its unknown values taken from another one, marked as guesses."""
    filled = tuple(_fill_argument(*pair) for pair in zip(launch.arguments, other.arguments, strict=True))
    parts = {name: (getattr(launch, name), getattr(other, name)) for name in ("grid", "block", "shared_bytes")}
    guessed = {name: theirs for name, (own, theirs) in parts.items() if own is None and theirs is not None}
    if not guessed and filled == launch.arguments:
        return launch
    return replace(launch, **guessed, arguments=filled, guessed=frozenset(guessed), inputs=inputs)


def _fill_argument(one: HostArgument, other: HostArgument) -> HostArgument:
    members = dict(one.members)
    told = tuple((place, members.get(place) or replace(theirs, is_guess=True)) for place, theirs in other.members)
    if not _is_open(one) or _is_open(other):
        return replace(one, members=told) if told and not one.is_array else one
    return replace(other, is_guess=True)
