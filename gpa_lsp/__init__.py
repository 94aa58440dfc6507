"""gpa_lsp: a GPU performance advisor that lives in the editor.

Data flows one way: ``binary`` decodes, ``program`` structures, ``profile`` reads, ``kernel`` joins, ``report`` gathers, ``render`` prints,
``lsp`` and ``cli`` serve. Imports go the other way, and the layers contract in ``pyproject.toml`` proves it.
"""

__version__ = "0.1.0"
