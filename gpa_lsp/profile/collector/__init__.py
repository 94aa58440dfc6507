"""COLLECT by injection: a library in the user's process that listens to CUPTI and writes records → a native profile.

What each kernel of a program did is sampled by the GPU itself; NVIDIA's CUPTI hands it out. :mod:`.run` makes a small library of the C sources in
``injection`` with the system's compiler and the headers that are installed, and the CUDA driver loads it into the program. It
appends records to a file of its own (:mod:`.records`), so that whatever becomes of the program, what it did until then is known. Afterwards
:mod:`.document` makes a profile (``gpa-lsp/profile/2``) of them, with the places on the host that launched each kernel (:mod:`.host_lines`).

Nothing of NVIDIA's is part of it: CUPTI is found, not brought, and the one that a program has loaded already is the one that is used.
"""
