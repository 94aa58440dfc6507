"""One launch as host code says it: :class:`HostLaunch`; what is not known is None."""

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.sources.host_values import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class HostArgument:
    """What is passed for one parameter.

    Attributes:
        text: as written.
        value: a number; None for arrays and where it is not known.
        size_bytes: of the array; None for numbers, and where it is not known.
        is_array: it is an array that the text allocates.
        line: where the array was allocated, 1-based; that of the launch for numbers.
        file: that the line is of; empty for the text itself.
        offset: elements from the array's beginning to where the pointer points; None where that is not known.
        members: of a structure what is known of its members, by offset in bytes.
        is_guess: it follows from what the program is taken to read.
    """

    text: str
    value: Number | None
    size_bytes: int | None
    is_array: bool
    line: int
    file: str = ""
    offset: int | None = 0
    members: "tuple[tuple[int, HostArgument], ...]" = ()
    is_guess: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLaunch:
    """One launch, as the text says it.

    Attributes:
        kernel: plain name, without namespace and template arguments.
        line: of the launch, 1-based.
        grid: blocks in x, y, z; None where it is not known.
        block: threads in x, y, z; None where it is not known.
        shared_bytes: dynamic shared memory; None where it is not known.
        arguments: in order.
        file: that the line is of; empty for the text itself.
        template_arguments: as demanglers spell them, None for each that is not known; empty where the kernel is no template, or nothing is known.
        is_assumed: the text does not choose it, as far as it was read: it stands in another case of a switch, whose value is taken for granted.
        is_of_other: it may be one of another instance of the kernel: nothing tells which.
        guessed: which of ``grid``, ``block`` and ``shared_bytes`` follow from what the program is taken to read.
        inputs: what the program is taken to read: where from, and the number. Empty where nothing of the launch follows from it.
    """

    kernel: str
    line: int
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    shared_bytes: int | None
    arguments: tuple[HostArgument, ...]
    file: str = ""
    template_arguments: tuple[str | None, ...] = ()
    is_assumed: bool = False
    is_of_other: bool = False
    guessed: frozenset[str] = frozenset()
    inputs: tuple[tuple[str, Number], ...] = ()
