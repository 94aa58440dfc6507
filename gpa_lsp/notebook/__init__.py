"""SERVE the notebook: ``%load_ext gpa_lsp.notebook`` brings ``%%gpa`` and ``%gpa_report``, which show a report's page and the lines of cells it
is about.

Cells are found again in a report by what compilers write down of them: the file name IPython gives a cell (Numba, Triton), or the text of a string
(CuPy's raw kernels). Nothing is drawn into the cells themselves: the output below repeats their hot lines.
"""


def load_ipython_extension(shell: object) -> None:
    """Register the magics; IPython calls this for ``%load_ext``."""
    from gpa_lsp.notebook.magics import register  # cell_runner, which is in this package, does without

    register(shell)
