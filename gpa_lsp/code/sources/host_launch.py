"""One launch as host code says it: :class:`HostLaunch`; what is not known is None."""

from msgspec import Struct

from gpa_lsp.code.sources.host_values import Number


class HostArgument(Struct, frozen=True, kw_only=True):
    """What is passed for one parameter."""

    text: str  # as written
    value: Number | None  # a number; None for arrays and where it is not known
    size_bytes: int | None  # of the array; None for numbers, and where it is not known
    is_array: bool  # it is an array that the text allocates
    line: int  # where the array was allocated, 1-based; that of the launch for numbers
    file: str = ""  # that the line is of; empty for the text itself
    # elements from the array's beginning to where the pointer points; None where that is not known
    offset: int | None = 0
    # of a structure what is known of its members, by offset in bytes
    members: "tuple[tuple[int, HostArgument], ...]" = ()
    is_guess: bool = False  # it follows from what the program is taken to read


class HostLaunch(Struct, frozen=True, kw_only=True):
    """One launch, as the text says it."""

    kernel: str  # plain name, without namespace and template arguments
    line: int  # of the launch, 1-based
    grid: tuple[int, int, int] | None  # blocks in x, y, z; None where it is not known
    block: tuple[int, int, int] | None  # threads in x, y, z; None where it is not known
    shared_bytes: int | None  # dynamic shared memory; None where it is not known
    arguments: tuple[HostArgument, ...]  # in order
    file: str = ""  # that the line is of; empty for the text itself
    # as demanglers spell them, None for each that is not known; empty where the kernel is no template, or nothing is known
    template_arguments: tuple[str | None, ...] = ()
    # the text does not choose it, as far as it was read: it stands in another case of a switch, whose value is taken for granted
    is_assumed: bool = False
    is_of_other: bool = False  # it may be one of another instance of the kernel: nothing tells which
    # which of ``grid``, ``block`` and ``shared_bytes`` follow from what the program is taken to read
    guessed: frozenset[str] = frozenset()
    # what the program is taken to read: where from, and the number. Empty where nothing of the launch follows from it.
    inputs: tuple[tuple[str, Number], ...] = ()
