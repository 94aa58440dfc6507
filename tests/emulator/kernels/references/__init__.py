"""References by family of kernels; importing a module registers its functions in :data:`tests.emulator.kernels.truth.REFERENCES`."""
