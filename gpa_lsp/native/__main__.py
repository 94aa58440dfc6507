"""Compiles what comes on standard input; see :func:`gpa_lsp.native.c_compiler.obtain_library`."""

from gpa_lsp.native.c_compiler import serve

serve()
