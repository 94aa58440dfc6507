"""One file per LSP method; each defines ``FEATURE``."""
