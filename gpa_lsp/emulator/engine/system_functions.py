"""Functions that device code calls and the system brings: ``vprintf``, ``malloc``, ``free``, ``__assertfail``."""

import re
from typing import Any

import numpy as np

from gpa_lsp.emulator.engine.calls import Builtin
from gpa_lsp.emulator.engine.device_runtime import PREFIXES
from gpa_lsp.emulator.engine.fragments import Fragment
from gpa_lsp.emulator.engine.machine import Machine
from gpa_lsp.emulator.engine.private_memory import LOCAL_WINDOW, WINDOW_BYTES
from gpa_lsp.emulator.engine.values import Value
from gpa_lsp.emulator.model import FAILED_ASSERTION, FaultKind

_LONGEST_TEXT = 1024
_CONVERSION = re.compile(r"%[-+ #0]*(\d+|\*)?(?:\.(\d+|\*))?(hh|h|ll|l|z|j|t)?([diouxXeEfFgGaAcsp%])")


def find_builtin(machine: Machine, name: str) -> Builtin | None:
    """What a function without a body does; None when nobody knows."""
    if machine.device_runtime is not None and name.startswith(PREFIXES):
        return machine.device_runtime.find_function(machine, name)
    found: dict[str, Builtin] = {
        "vprintf": _Printer(machine).call,
        "__assertfail": lambda fragment, values, static: _fail(machine, fragment, values, static),
        "malloc": lambda fragment, values, _: _allocate(machine, fragment, values),
        "free": lambda fragment, values, _: _free(machine, fragment, values),
    }
    return found.get(name)


def _fail(machine: Machine, fragment: Fragment, values: list[Value], static: int) -> None:
    lane = int(fragment.active().argmax())
    numbers = [int(value[lane] if value.ndim else value) for value in values[:3]]
    words = [_read_text(machine, number) for number in numbers[:2]]
    line = numbers[2] & 0xFFFFFFFF if len(numbers) > 2 else 0
    message = (
        f"{FAILED_ASSERTION} {words[0]!r} failed, {words[1] if len(words) > 1 else ''}:{line}"
        if words
        else f"{FAILED_ASSERTION} failed"
    )
    machine.faults.add_lanes(
        FaultKind.TRAP, message, fragment.warps, np.flatnonzero(fragment.active()), instruction=static, is_fatal=True
    )


def _allocate(machine: Machine, fragment: Fragment, values: list[Value]) -> Value:
    sizes = np.broadcast_to(values[0], (fragment.warps.lanes,))
    out = np.zeros(fragment.warps.lanes, np.uint64)
    for lane in np.flatnonzero(fragment.active()).tolist():
        out[lane] = machine.heap.allocate(int(sizes[lane]))
    machine.follow_heap()
    return out


def _free(machine: Machine, fragment: Fragment, values: list[Value]) -> Value:
    addresses = np.broadcast_to(values[0], (fragment.warps.lanes,))
    for address in addresses[fragment.active()].tolist():
        machine.heap.free(address)
    machine.follow_heap()
    return np.uint64(0)


def _read_text(machine: Machine, address: int) -> str:
    data = machine.arena.read_bytes(address, _LONGEST_TEXT)
    return data.split(b"\0")[0].decode("utf-8", "replace")


class _Printer:
    """Formats what lanes print, in the order of the lanes."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def call(self, fragment: Fragment, values: list[Value], static: int) -> Value:
        """``vprintf``: gives the number of arguments, as the hardware does."""
        del static
        lanes = np.flatnonzero(fragment.active())
        formats = np.broadcast_to(values[0], (fragment.warps.lanes,))
        arguments = np.broadcast_to(values[1], (fragment.warps.lanes,))
        numbers = np.broadcast_to(fragment.warps.column("lane"), (fragment.warps.lanes,))
        texts: dict[int, str] = {}  # lanes print by few formats
        for lane in lanes.tolist():
            place = int(formats[lane])
            text = texts.get(place)
            if text is None:
                text = texts[place] = _read_text(self._machine, place)
            buffer = self._read_buffer(fragment, int(arguments[lane]), int(numbers[lane]))
            if not self._machine.print_text(self._format(text, buffer)):
                break
        return np.uint64(0)

    def _read_buffer(self, fragment: Fragment, address: int, lane: int) -> bytes:
        if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_BYTES:
            return fragment.batch.memory.read_local(lane, address - LOCAL_WINDOW, _LONGEST_TEXT)
        return self._machine.arena.read_bytes(address, _LONGEST_TEXT)

    def _format(self, text: str, buffer: bytes) -> str:
        place = 0

        def take(size: int, dtype: str) -> Any:
            nonlocal place
            place = -(-place // size) * size
            raw = buffer[place : place + size].ljust(size, b"\0")
            place += size
            return np.frombuffer(raw, dtype)[0]

        def convert(found: "re.Match[str]") -> str:
            width, digits, length, letter = found.groups()
            if letter == "%":
                return "%"
            flags = found.group(0)[1:].rstrip(letter).removesuffix(length or "")
            if width == "*":
                flags = flags.replace("*", str(int(take(4, "<i4"))), 1)
            if digits == "*":
                flags = flags.replace("*", str(int(take(4, "<i4"))), 1)
            return self._convert_one(flags, length or "", letter, take)

        return _CONVERSION.sub(convert, text)

    def _convert_one(self, flags: str, length: str, letter: str, take: Any) -> str:
        wide = length in ("l", "ll", "z", "j", "t")
        value: Any
        match letter:
            case "d" | "i":
                value, letter = int(take(8, "<i8") if wide else take(4, "<i4")), "d"
            case "o" | "u" | "x" | "X":
                value = int(take(8, "<u8") if wide else take(4, "<u4"))
                letter = "d" if letter == "u" else letter
            case "c":
                value = chr(int(take(4, "<u4")) & 0xFF)
            case "s":
                value = _read_text(self._machine, int(take(8, "<u8")))
            case "p":
                value, letter, flags = int(take(8, "<u8")), "x", "#"
            case _:
                value = float(take(8, "<f8"))
                if letter in "aA":
                    return float(value).hex()
        flags = _limit(flags)
        return str(f"%{flags}{letter}" % value)


def _limit(flags: str) -> str:
    """Widths and precisions that would fill the memory are cut."""
    return re.sub(r"\d+", lambda found: found.group(0)[:3], flags)
