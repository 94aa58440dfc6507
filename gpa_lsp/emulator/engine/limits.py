"""What no GPU accepts: :func:`check_launch`."""

from gpa_lsp.emulator.launch import LaunchDescription
from gpa_lsp.emulator.ptx.model import PtxFunction

_MOST_THREADS = 1024
_LARGEST_BLOCK = (1024, 1024, 64)
_LARGEST_GRID = (2**31 - 1, 65535, 65535)
_MOST_SHARED_BYTES = 227 << 10
_MOST_PARAMETER_BYTES = 32764


def check_launch(kernel: PtxFunction, launch: LaunchDescription, static_shared_bytes: int) -> str | None:
    """What is wrong with a launch, one sentence; None when nothing is.

    The limits are those of the largest GPUs of compute capabilities 7.0 to 12.0, for any of which PTX may be compiled.

    Source: CUDA C++ Programming Guide, technical specifications per compute capability.
    """
    for name, extent, largest in (("block", launch.block, _LARGEST_BLOCK), ("grid", launch.grid, _LARGEST_GRID)):
        for axis, size, most in zip("xyz", extent, largest, strict=True):
            if not 1 <= size <= most:
                return f"the {name} has {size:,} in {axis}; it must be 1 to {most:,}"
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if threads > _MOST_THREADS:
        return f"the block has {threads:,} threads; {_MOST_THREADS:,} are the most"
    if kernel.max_threads is not None and threads > kernel.max_threads:
        return f"the block has {threads:,} threads; the kernel was compiled for at most {kernel.max_threads:,}"
    required = kernel.required_threads
    if required is not None and tuple(launch.block) != tuple(required):
        return f"the block is {_cross(launch.block)}; the kernel was compiled for {_cross(required)} only"
    shared = static_shared_bytes + launch.shared_bytes
    if launch.shared_bytes < 0 or shared > _MOST_SHARED_BYTES:
        return f"the block needs {shared:,} bytes of shared memory; {_MOST_SHARED_BYTES:,} are the most"
    parameters = sum(one.size_bytes for one in kernel.parameters)
    if parameters > _MOST_PARAMETER_BYTES:
        return f"the kernel has {parameters:,} bytes of parameters; {_MOST_PARAMETER_BYTES:,} are the most"
    return None


def _cross(extent: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in extent)
