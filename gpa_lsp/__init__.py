"""gpa_lsp: a GPU performance advisor that lives in the editor.

How it is built stands in the README beside this file: what each room does, what it never imports, and where things are added.
"""

__version__ = "0.1.0"
