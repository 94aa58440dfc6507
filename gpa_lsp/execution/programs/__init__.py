"""RUN: a CUDA program on a runtime of ours → its own output, and what each of its launches did; no GPU.

The program is the user's own, and runs as the user's own: this room is entered on a command of theirs only. Its runtime library (C, in
``runtime/``) is compiled with the user's compiler and CUDA headers on first use. Device memory is one file in memory that both processes have at
the same addresses, so that a device pointer is a pointer for the program, too; what it registers and launches comes over a private socket.
"""
