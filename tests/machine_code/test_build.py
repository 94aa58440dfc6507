"""Machine code is made once on a machine, off every budget; what was damaged is made again, and code stays while somebody has it."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from llvmlite import ir

from gpa_lsp.foundation import kept_files
from gpa_lsp.foundation.machine_code import build, types
from gpa_lsp.foundation.machine_code.build import Code, compile_module, load_module
from gpa_lsp.foundation.machine_code.translate import read_functions, translate
from gpa_lsp.foundation.native.c_compiler import open_libraries
from gpa_lsp.foundation.work_time import work_time

_TEXT = "def add(values: Pointer[s64], more: s64) -> s64:\n    return values[0] + more\n"


def read() -> ir.Module:
    return translate(read_functions(_TEXT, vars(types), "made").values(), name="sum")


@pytest.fixture(autouse=True)
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is compiled, in a cache of its own."""
    monkeypatch.setenv(kept_files.FOLDER_VARIABLE, str(tmp_path))
    names: list[str] = []

    def note(module: ir.Module, *, level: int, is_vectorised: bool) -> bytes:
        names.append(module.name)
        return compile_module(module, level=level, is_vectorised=is_vectorised)

    monkeypatch.setattr(build, "compile_module", note)
    return names


def add(code: Code) -> int:
    return code.call("add", np.array([40]), 2)


def test_it_is_compiled_once_and_off_every_budget(compiled: list[str]) -> None:
    before = work_time()
    for _ in range(2):
        assert add(load_module(read, (_TEXT,), name="sum", functions=("add",))) == 42
    assert work_time() - before < 0.01
    assert compiled == ["sum"]
    assert add(load_module(read, (_TEXT, "another"), name="sum", functions=("add",))) == 42
    assert len(compiled) == 2


def test_what_is_damaged_is_made_again(compiled: list[str]) -> None:
    assert add(load_module(read, (_TEXT,), name="sum", functions=("add",))) == 42
    for path in open_libraries()._list_entries():
        file = path[0]
        file.write_bytes(file.read_bytes()[:-7] + b"damaged")
    assert add(load_module(read, (_TEXT,), name="sum", functions=("add",))) == 42
    assert len(compiled) == 2


_CHOOSE = """
def choose(first: Pointer[u32], second: Pointer[u32], by: Pointer[s32], to: Pointer[u32]) -> s64:
    one, other = lanes(first), lanes(second)
    mixed = (one & 0x7FFFFFFF) | (other & 0x80000000)
    put(to, mixed if lanes(by) < 0 else other)
    return 0
"""


def test_bits_of_two_vectors_are_chosen_from() -> None:
    """LLVM exchanges the operands of this on processors with AVX-512."""
    module = translate(read_functions(_CHOOSE, vars(types), "made").values(), name="choose")
    random = np.random.Generator(np.random.PCG64(7))
    first, second, by = (random.integers(0, 1 << 32, 32, dtype=np.uint32) for _ in range(3))
    found = np.zeros(32, np.uint32)
    Code(compile_module(module), "choose", ("choose",)).call("choose", first, second, by, found)
    mixed = (first & 0x7FFFFFFF) | (second & 0x80000000)
    assert np.array_equal(found, np.where(by.view(np.int32) < 0, mixed, second))


def test_threads_compile_and_let_go_beside_each_other() -> None:
    found: list[int] = []

    def work(number: int) -> None:
        for round_ in range(4):
            code = Code(compile_module(read()), f"{number}-{round_}", ("add",))
            found.append(add(code))
            del code
            gc.collect()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [42] * 16


def test_a_process_may_end_while_a_thread_compiles() -> None:
    code = """
import threading, time
from gpa_lsp.execution.emulator.compiled import core_functions as core
from gpa_lsp.foundation.machine_code.build import compile_module
from gpa_lsp.foundation.machine_code.translate import translate
module = translate(core._ROOTS, name="core")
threading.Thread(target=compile_module, args=(module,), daemon=True).start()
time.sleep({})
"""
    for delay in (0.1, 0.3, 0.6, 1.0):
        done = subprocess.run([sys.executable, "-c", code.format(delay)], capture_output=True, timeout=300, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
