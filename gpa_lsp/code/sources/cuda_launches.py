"""The block sizes that the host code of a CUDA C++ text launches a kernel with, as far as the text decides them."""

from msgspec import Struct

from gpa_lsp.code.sources.host_launches import find_host_launches

_MOST_THREADS = 1024


class LaunchSize(Struct, frozen=True, kw_only=True):
    """One launch of a kernel, ``kernel<<<grid, block, shared>>>(…)``."""

    line: int  # of the launch, 1-based
    block: tuple[int, int, int]  # threads in x, y, z
    # 0 where the launch names none; None where it names something that is no number of the text
    dynamic_shared_bytes: int | None

    @property
    def threads(self) -> int:
        """Of one block."""
        return self.block[0] * self.block[1] * self.block[2]


def find_launch_sizes(file: str, text: str, kernel: str) -> tuple[LaunchSize, ...]:
    """The launches of a kernel whose block is made of numbers, constants and macros of the text, in its order.

    Args:
        file: its name, for the language.
        text: of the whole file.
        kernel: plain name, without namespace or template arguments.

    Returns:
        Empty for texts without such a launch, and for those that are not parsed. A variable counts as a number when it is declared with one
        and nothing in its function writes to it afterwards.

    >>> text = "#define T 16\\nvoid f() { dim3 block(T, T); k<<<9, block>>>(); k<<<9, 2 * 64, n>>>(); k<<<9, threads>>>(); }"
    >>> [(one.block, one.dynamic_shared_bytes) for one in find_launch_sizes("k.cu", text, "k")]
    [((16, 16, 1), 0), ((128, 1, 1), None)]
    """
    return tuple(
        LaunchSize(line=one.line, block=one.block, dynamic_shared_bytes=one.shared_bytes)
        for one in find_host_launches(file, text)
        if one.kernel == kernel
        and one.block is not None
        and 0 < one.block[0] * one.block[1] * one.block[2] <= _MOST_THREADS
    )
