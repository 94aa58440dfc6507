"""Kernels that are one kernel to the person who edits them, although a compiler gave them another name.

A template argument, a type or a counter is part of a linkage name, and compilers of directives put the line of the directive into it. Whoever changes
a tile size or inserts a line above still has the same kernel.
"""

import re
from pathlib import PurePosixPath, PureWindowsPath

from msgspec import Struct

from gpa_lsp.kernel.names import shorten_name

_LINE_NAMES = (
    re.compile(
        r"(?P<stem>.+)_(?P<line>\d+)_gpu(?P<rest>\w*)"
    ),  # OpenACC of NVIDIA's HPC compilers, seen in real profiles
    re.compile(r"nvkernel_(?P<stem>.+)_F\d+L(?P<line>\d+)_(?P<rest>\d+_?)"),  # their OpenMP
    re.compile(r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_(?P<stem>.+)_l(?P<line>\d+)(?P<rest>(?:_\d+)?)"),  # LLVM's
)
"""Names that hold the line of a directive. Source of the last one: LLVM, ``TargetRegionEntryInfo::getTargetRegionEntryFnName``."""

# Names that end in a counter of the compiler's session: Julia's, and Numba's of old
_COUNTED_NAMES = (re.compile(r"julia_(?P<stem>.+)_\d+"), re.compile(r"(?P<stem>.+)\$\d+"))

# Files in which people name kernels themselves; a number in a name is no line there
_KERNEL_LANGUAGES = frozenset({".cu", ".cuh", ".cuf", ".py", ".jl", ".hip"})


class KernelFamily(Struct, frozen=True, kw_only=True):
    """What stays of a kernel's name."""

    name: str  # the same for all its members
    # of the directive it was compiled from; None where the name does not say. Members of a family with lines are different kernels.
    line: int | None


def find_family(readable_name: str, file: str | None) -> KernelFamily:
    """The family of a kernel.

    Args:
        readable_name: demangled.
        file: the source it is in; None when unknown.

    >>> find_family("void scale<float, 64>(float*)", "k.cu").name
    'scale'
    >>> find_family("smooth_x_279_gpu", "weather.F90")
    KernelFamily(name='smooth_x', line=279)
    >>> find_family("conv_3_gpu", "conv.cu"), find_family("julia_bb_4477", "bb.jl").name
    (KernelFamily(name='conv_3_gpu', line=None), 'bb')
    """
    base = shorten_name(readable_name).partition("<")[0]
    for pattern in _COUNTED_NAMES:
        counted = pattern.fullmatch(base)
        if counted is not None:
            return KernelFamily(name=counted["stem"], line=None)
    if file is None or _find_suffix(file) in _KERNEL_LANGUAGES:
        return KernelFamily(name=base, line=None)
    for pattern in _LINE_NAMES:
        found = pattern.fullmatch(readable_name)
        if found is not None:
            return KernelFamily(name=found["stem"] + found["rest"], line=int(found["line"]))
    return KernelFamily(name=base, line=None)


def _find_suffix(file: str) -> str:
    kind = PureWindowsPath if "\\" in file else PurePosixPath
    return kind(file).suffix.lower()
