"""CUDA's libraries for host code (Thrust, the device-wide part of CUB): what stands in for their headers where host code is left out."""

import re
from collections.abc import Iterable, Iterator

_HOST_ONLY = re.compile(
    rb'#[ \t]*include[ \t]*[<"]((?:thrust|cub/device|cub/host|cub/grid|nvtx3|cutensor|cudnn|nvml)[^>"\n]*)[>"]'
)
_ALL_OF_CUB = re.compile(rb'#[ \t]*include[ \t]*[<"](cub/cub\.cuh)[>"]')
_PART_OF_CUB = re.compile(rb"\bcub::(Block|Warp|Thread)([A-Z]\w*)")
_WORD = re.compile(r"(?<!^)(?=[A-Z])")


def replace_host_libraries(texts: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """(name in the ``#include``, what is read instead) of the headers of libraries that launch kernels themselves.

    The parts of CUB that run in a block or a warp are kept: ``cub/cub.cuh`` becomes the headers of those that the texts name.

    Args:
        texts: of the source and its headers.

    >>> list(replace_host_libraries([b"#include <thrust/sort.h>\\n#include <cub/cub.cuh>\\n cub::BlockReduce<int, 4> r;"]))
    [('thrust/sort.h', ''), ('cub/cub.cuh', '#include <cub/block/block_reduce.cuh>\\n')]
    """
    kept = tuple(texts)
    seen: set[str] = set()
    for text in kept:
        for found in _HOST_ONLY.finditer(text):
            name = found[1].decode("utf-8", "replace")
            if name not in seen and not name.startswith(("thrust/complex", "thrust/tuple", "thrust/pair")):
                seen.add(name)
                yield name, ""
    if any(_ALL_OF_CUB.search(text) for text in kept):
        parts = dict.fromkeys(
            f"cub/{found[1].decode().lower()}/{_spell(found[1] + found[2])}.cuh"
            for text in kept
            for found in _PART_OF_CUB.finditer(text)
        )
        yield "cub/cub.cuh", "".join(f"#include <{part}>\n" for part in parts)


def _spell(name: bytes) -> str:
    """``BlockRadixSort`` → ``block_radix_sort``."""
    return _WORD.sub("_", name.decode()).lower()
