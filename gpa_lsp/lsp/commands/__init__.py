"""One file per command the editor can ask the server to execute; each defines ``COMMAND``."""
