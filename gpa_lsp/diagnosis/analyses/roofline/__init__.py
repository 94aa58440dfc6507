"""PLACE: a kernel's operations, bytes and time under its machine's roofs."""
