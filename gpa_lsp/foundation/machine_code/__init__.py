"""MACHINE CODE: functions written in a small typed part of Python (:mod:`types`) → LLVM → functions of this process. No compiler is needed."""

# ``interpreter`` in this variable of the environment leaves kernels that run for long to operations one by one
VARIABLE = "GPA_LSP_COMPILED_CORE"
