"""Modules of LLVM as machine code of this process: :func:`load_module`."""

import ctypes
import hashlib
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from gpa_lsp.foundation.native.c_compiler import open_libraries
from gpa_lsp.foundation.work_time import preparing

_LOADING = 2  # The level of what is made already: any


class Code:
    """Functions in this process; they stay as long as it.

    Args:
        content: of the object file that they are in.
        name: of it, for messages of LLVM.
        functions: that are called; to look for them later would wait until LLVM has made what another thread asked for.
    """

    def __init__(self, content: bytes, name: str, functions: Iterable[str] = ()) -> None:
        self._content = content
        module = llvm.parse_assembly("")
        module.name = name
        self._engine = llvm.create_mcjit_compiler(module, _open_target(_LOADING))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()
        self._functions = {one: ctypes.CFUNCTYPE(ctypes.c_int64)(self.find_address(one)) for one in functions}

    def find_address(self, name: str) -> int:
        """The address of a function; 0 for none."""
        return int(self._engine.get_function_address(name))

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function that gives 64 bits.

        Args:
            name: of it.
            arguments: contiguous arrays of the types it is written for, integers, and None for no array.
        """
        return int(self._functions[name](*[_convert(one) for one in arguments]))


def _convert(argument: Any) -> Any:
    if argument is None:
        return ctypes.c_void_p(None)
    if isinstance(argument, int):
        return ctypes.c_int64(argument)
    array = getattr(argument, "ctypes", None)
    return argument if array is None else ctypes.c_void_p(array.data)


def load_module(
    make: Callable[[], ir.Module],
    key: Sequence[str],
    *,
    name: str,
    functions: Iterable[str] = (),
    level: int = 2,
    is_vectorised: bool = False,
) -> Code:
    """A module, compiled where it was not before on this machine.

    Args:
        make: gives it where it has to be compiled.
        key: all that it is made from.
        name: of it, for messages.
        functions: that are called.
        level: of optimisation.
        is_vectorised: loops become vector instructions.

    Raises:
        TranslationError: something is written that the translator does not know.
    """
    with preparing():
        kept = open_libraries()
        digest = _digest(key, f"{level} {is_vectorised}")
        content = kept.load(digest)
        if content is None:
            content = compile_module(make(), level=level, is_vectorised=is_vectorised)
            kept.store(digest, content)
            kept.trim()
        return Code(content, name, functions)


def compile_module(module: ir.Module, *, level: int = 2, is_vectorised: bool = False) -> bytes:
    """The object file of a module."""
    target = _open_target(level)
    module.triple = llvm.get_process_triple()
    # LLVM destroys its global context when the process ends, under threads that are at work in it
    parsed = llvm.parse_assembly(str(module), llvm.create_context())
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = is_vectorised
    options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(parsed, builder)
    if "avx512f" in _find_features() and blends_bits(str(parsed)):
        target = _open_target(level, ",-avx512f")
    return bytes(target.emit_object(parsed))


_AND = re.compile(r"(%\S+) = and <\d+ x i(\d+)> \S+, splat \(i\d+ (-?\d+)\)")
_OR = re.compile(r" = or (?:disjoint )?<\d+ x i\d+> (%\S+), (%\S+)")


def blends_bits(text: str) -> bool:
    """Whether optimised code of LLVM takes some bits of one vector and all others of another, by a mask that is known.

    Where a select follows, LLVM 22 makes a masked VPTERNLOG of both for AVX-512, and now and then exchanges its operands.
    """
    for part in text.split("\ndefine "):
        masks = {name: (int(mask) % (1 << int(bits)), (1 << int(bits)) - 1) for name, bits, mask in _AND.findall(part)}
        pairs = ((masks[one], masks[other]) for one, other in _OR.findall(part) if one in masks and other in masks)
        if any(one ^ other == everything for (one, everything), (other, _) in pairs):
            return True
    return False


def _open_target(level: int, without: str = "") -> Any:
    """LLVM's description of this processor; the engine that loads code with it owns it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=_find_processor(), features=_find_features() + without, opt=level, jit=True, codemodel="jitdefault"
    )


@cache
def _find_processor() -> str:
    return str(llvm.get_host_cpu_name())


@cache
def _find_features() -> str:
    found = str(llvm.get_host_cpu_features().flatten())
    # Gathers of 32 lanes are no faster than their loads one by one, and on many processors slower.
    return f"{found},+prefer-no-gather,+prefer-no-scatter" if platform.machine() in ("x86_64", "AMD64") else found


def _digest(key: Sequence[str], kind: str) -> str:
    """A name for everything that decides the compiled code."""
    sources = _read_sources()
    words = (*key, sources, kind, llvmlite.__version__, platform.machine(), _find_processor(), _find_features())
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


@cache
def _read_sources() -> str:
    """The source code of the translation itself."""
    return "".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py")))
