"""Headers of NVIDIA's samples and libraries that sources include and nobody installed: what stands in their place.

Those here are for building programs, too, and those in ``cublas``, ``cufft`` and ``random``, where the library is not installed. Those in ``device``
have less than the real ones, or other values: kernels can be looked at with them, and nothing is built with them.
"""

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent  # To search behind everything else, where a program is built


@cache
def read_absent_header(name: str) -> str | None:
    """What stands in place of a header, by its name in the ``#include``, under its own path; None where nothing does."""
    if not name.replace(".", "_").isidentifier():
        return None
    paths = (FOLDER / name, FOLDER / "device" / name)
    found = next((path for path in paths if path.suffix == ".h" and path.is_file()), None)
    return None if found is None else f'#line 1 "{found.as_posix()}"\n{found.read_text(encoding="utf-8")}'
