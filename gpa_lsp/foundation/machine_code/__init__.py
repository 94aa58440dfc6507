"""MACHINE CODE: functions written in a small typed part of Python (:mod:`types`) → LLVM → functions of this process. No compiler is needed."""

import os

# ``0`` in this variable of the environment leaves steps of SASS to numpy; ``interpreter`` leaves kernels that run for long to operations one by one
VARIABLE = "GPA_LSP_COMPILED_CORE"


def is_wanted() -> bool:
    """Whether the environment leaves anything to machine code."""
    return os.environ.get(VARIABLE) != "0"
