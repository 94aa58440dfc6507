"""The families of instructions: each file defines ``FAMILY``, and the functions of typed Python that its expressions name."""
