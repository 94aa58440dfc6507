"""Execution of kernels without a GPU: builds and launches, emulation, accesses, timing, prediction, and whole programs."""
