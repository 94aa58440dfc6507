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

from gpa_lsp.execution.record.describe import Recorded
from gpa_lsp.execution.record.in_process import RecordedLaunches, launches, prepare

__all__ = ["Recorded", "RecordedLaunches", "launches", "prepare"]
