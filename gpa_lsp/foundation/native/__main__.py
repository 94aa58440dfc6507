"""Compiles what is asked for on standard input; see :func:`gpa_lsp.foundation.native.c_compiler.obtain_library`."""

from gpa_lsp.foundation.native.c_compiler import make
from gpa_lsp.foundation.processes.python_children import answer_apart

answer_apart(make)
