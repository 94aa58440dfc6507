"""Records launches on a GPU as they happen → descriptions with code and data, for the emulator, the simulator and others.

What is named in ``__all__`` here stays as it is between minor versions. A program of Python records what it launches itself::

    import gpa_lsp.execution.record

    gpa_lsp.execution.record.prepare()  # before anything uses the GPU
    ...
    with gpa_lsp.execution.record.launches("recorded") as recording:
        kernel[grid](x, y, n)
    print(recording.launches[0].description)

Any other program is started with ``gpa-lsp record -o recorded -- ./app``. Both stand before CUDA's driver library, so that all compilers are alike
to them. Names and types of arguments, constants and the place in the source come from what Triton, Numba, CuPy (raw kernels) and CuTe DSL hold of
their kernels in the process; so does the PTX of those that load machine code (CuTe DSL: with ``CUTE_DSL_KEEP_PTX=1``), and of CuPy the source.

Of each kernel the first launch with the most threads is kept, or a chosen one, with the arrays that its arguments lead to, the variables of its
module, and textures and surfaces whose handles are arguments of a kernel whose PTX is known. What variables hold is missing where the program loaded
compressed code and did not ask for them; those are named. Linux only.
"""

import atexit
import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpa_lsp.execution.record.describe import Recorded, RecordSettings, describe_launches
from gpa_lsp.execution.record.held_kernels import list_held_kernels
from gpa_lsp.execution.record.python_programs import take_held_kernels
from gpa_lsp.execution.record.run import (
    BYTES_VARIABLE,
    FOLDER_VARIABLE,
    LAUNCH_VARIABLE,
    LIBRARY_NAME,
    build_recorder,
    find_driver,
)
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.processes.watched_command import TEMPORARY

_MAPS = Path("/proc/self/maps")
_BEGIN = "gpa_lsp_record_begin"
_IMAGES: list[str] = []  # The folder that this process keeps loaded code in, once it stands before the driver


class RecordedLaunches:
    """Launches recorded by a block of :func:`launches`, once it has ended.

    Attributes:
        folder: with the descriptions.
        launches: one of each kernel.
        left_out: launches that were wanted and could not be recorded: captured into a graph, or by a driver older than 12.4.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.launches: tuple[Recorded, ...] = ()
        self.left_out = 0


def prepare() -> None:
    """Install the recorder before CUDA's driver library. Does nothing if it is installed.

    Raises:
        InputError: the driver's library is in use already.
        MissingToolError: there is no driver, or no C compiler.
        GpaError: this system is no Linux.
    """
    _load()


@contextmanager
def launches(
    folder: str | Path, *, limit_bytes: int = RecordSettings().limit_bytes, number: int = 0
) -> Iterator[RecordedLaunches]:
    """Record what this process launches until the block ends.

    Raises:
        InputError: the driver's library was in use before :func:`prepare`, or the folder cannot be written to.
        MissingToolError: there is no driver, or no C compiler.
        GpaError: this system is no Linux.
    """
    library = _load()
    recording = RecordedLaunches(Path(folder))
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as raw:
        _begin(library, raw, limit_bytes, number)
        left_out = ctypes.c_ulong()
        try:
            yield recording
        finally:
            library.gpa_lsp_record_end(ctypes.byref(left_out))
            recording.left_out = left_out.value
            outer = os.environ.get(FOLDER_VARIABLE)
            if outer:  # started with gpa-lsp record, which goes on
                given = (os.environ.get(BYTES_VARIABLE, "0"), os.environ.get(LAUNCH_VARIABLE, "0"))
                _begin(library, outer, *map(int, given))
            images = Path(outer or _IMAGES[0])
            held = take_held_kernels(list_held_kernels(Path(raw), images))
            recording.launches = describe_launches(Path(raw), images, recording.folder, held)


def _begin(library: Any, raw: str, limit_bytes: int, number: int) -> None:
    library.gpa_lsp_record_begin(raw.encode(), ctypes.c_uint64(limit_bytes), ctypes.c_ulong(number))


def _load() -> Any:
    """The recorder's library: preloaded, loaded before, or built now."""
    whole = ctypes.CDLL(None)
    if hasattr(whole, _BEGIN) and (_IMAGES or os.environ.get(FOLDER_VARIABLE)):
        return whole
    mapped = _MAPS.read_text(errors="replace") if _MAPS.is_file() else ""
    if "/libcuda.so" in mapped and LIBRARY_NAME not in mapped:
        message = "CUDA's driver library is in use already"
        remedy = "call gpa_lsp.execution.record.prepare() before anything uses the GPU, or start the program with gpa-lsp record"
        raise InputError(message, path=None, remedy=remedy)
    folder = Path(tempfile.mkdtemp(prefix=TEMPORARY))
    try:
        path = build_recorder(find_driver(), folder)
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        images = tempfile.mkdtemp(prefix=TEMPORARY)
        atexit.register(shutil.rmtree, images, ignore_errors=True)
        library.gpa_lsp_record_keep(images.encode())
        _IMAGES.append(images)
        return library
    finally:
        for one in folder.iterdir():
            one.unlink()  # what is loaded stays
        folder.rmdir()


__all__ = ["Recorded", "RecordedLaunches", "launches", "prepare"]
