"""For programs: launches on a GPU as they happen → descriptions with their code and data, which the emulator, the simulator and others read.

What is named in ``__all__`` here stays as it is between minor versions. A program of Python records what it launches itself::

    import gpa_lsp.record

    gpa_lsp.record.prepare()  # before anything uses the GPU
    ...
    with gpa_lsp.record.launches("recorded") as recording:
        kernel[grid](x, y, n)
    print(recording.launches[0].description)

Any other program is started with ``gpa-lsp record -o recorded -- ./app``. Both stand before CUDA's driver library, so that all compilers are alike
to them; Triton and Numba are tried. Of each kernel the first launch with the most threads is kept, or a chosen one. What lies in variables of a
module and in textures is not kept. Linux only.
"""

from gpa_lsp.record.in_process import RecordedLaunches, launches, prepare
from gpa_lsp.record.model import Recorded

__all__ = ["Recorded", "RecordedLaunches", "launches", "prepare"]
