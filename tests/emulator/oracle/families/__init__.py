"""The catalogue of instruction families: every module defines ``FAMILY``, a :class:`~tests.emulator.oracle.model.Family`."""
