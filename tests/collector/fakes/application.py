"""A Python program that launches from two lines: with the interpreter's lock and without. Arguments: the driver, a cubin, a kernel."""

import ctypes
import sys
from pathlib import Path


class Trainer:
    """Launches in a method."""

    def __init__(self, driver, function):
        self.driver, self.function = driver, function

    def step(self, blocks):
        """One launch."""
        return launch(self.driver, self.function, blocks)


def launch(driver, function, blocks):
    """A launch of 64 threads a block."""
    return driver.cuLaunchKernel(function, blocks, 1, 1, 64, 1, 1, 0, None, None, None)


def forward(trainer):
    """Launch in a generator, as a data loader would."""
    for blocks in (2, 2):
        yield trainer.step(blocks)


def main():
    """Load and launch."""
    path, cubin, kernel = sys.argv[1:4]
    free, locked = ctypes.CDLL(path), ctypes.PyDLL(path)
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    free.cuInit(0)
    free.fake_create_context(ctypes.byref(context))
    free.cuModuleLoadData(ctypes.byref(module), Path(cubin).read_bytes())
    assert free.cuModuleGetFunction(ctypes.byref(function), module, kernel.encode()) == 0
    list(forward(Trainer(free, function)))
    list(forward(Trainer(locked, function)))
    launch(free, function, 5)


if __name__ == "__main__":
    main()
