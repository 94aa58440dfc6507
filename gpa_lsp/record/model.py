"""What was recorded: :class:`Recorded`."""

from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings:
    """What is kept.

    Attributes:
        limit_bytes: of the data of one launch; larger ones are not kept.
        number: the launch of each kernel that is kept, from 1; 0 for the first with the most threads.
    """

    limit_bytes: int = 256 << 20
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One launch.

    Attributes:
        kernel: mangled name.
        number: of the launch among those of its kernel, from 1.
        grid: blocks in x, y, z.
        block: threads in x, y, z.
        module: its code, a file of the folder; PTX where it is known.
        description: the TOML beside it; None where there is none, see ``problem``.
        has_ptx: the code can be emulated and traced; machine code alone can be simulated and launched.
        problem: why it is not described; empty where it is.
        variables: of the module that the kernel uses and that are not kept: compressed code does not tell names, and the program asked for none.
        source: CUDA C++ it was compiled from while the program ran, a file beside the description; None where there is none.
        origin: the library of Python that made the kernel, with its place and constants; empty where it was none.
    """

    kernel: str
    number: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    module: Path
    description: Path | None
    has_ptx: bool
    problem: str = ""
    variables: tuple[str, ...] = ()
    source: Path | None = None
    origin: str = ""
