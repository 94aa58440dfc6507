"""LAUNCH: a module and a described launch on a GPU of this computer → its memory there, filled, and back; through the CUDA driver, in one place."""
