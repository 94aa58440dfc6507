"""Which functions of a module a kernel can come to."""

from collections.abc import Iterable

from gpa_lsp.code.ptx.model import Operand, PtxFunction, PtxModule, Symbol, Vector
from gpa_lsp.foundation.shared_facts import Remembered


@Remembered
def list_reachable(module: PtxModule, kernel: str) -> tuple[PtxFunction, ...]:
    """The kernel, then the functions with a body that it can call, directly or not, in order of the text.

    A function whose address is taken counts as called, but for a kernel, which can only be launched.
    Where a call goes through a pointer and nothing says where to, all device functions do.

    >>> from gpa_lsp.code.ptx.parse import parse_ptx
    >>> text = ".version 8.0 .target sm_80 .func a() { ret; } .func b() { call a; ret; } .entry k() { call b; ret; } .func c() { ret; }"
    >>> [function.name for function in list_reachable(parse_ptx(text, name="k"), "k")]
    ['k', 'a', 'b']
    """
    reached = {kernel}
    waiting = [kernel]
    while waiting:
        for name in _list_named(module, module.functions[waiting.pop()]):
            function = module.functions.get(name)
            if function is not None and name not in reached and function.instructions and not function.is_entry:
                reached.add(name)
                waiting.append(name)
    others = (function for name, function in module.functions.items() if name in reached and name != kernel)
    return (module.functions[kernel], *others)


def _list_named(module: PtxModule, function: PtxFunction) -> set[str]:
    """Functions an instruction names or can call."""
    found: set[str] = set()
    lists: dict[int, tuple[str, ...]] = {}
    variables: set[str] = set()
    for instruction in function.instructions:
        call = instruction.call
        if call is None:
            names = set(_list_symbols(instruction.sources))
            found.update(names & module.functions.keys())
            variables.update(names & module.variables.keys())
        elif call.callee is not None:
            found.add(call.callee)
        elif call.possible:
            lists[id(call.possible)] = call.possible
        else:
            found.update(name for name, one in module.functions.items() if not one.is_entry)
    for names_of_list in lists.values():
        found.update(names_of_list)
    for name in variables:
        found.update(symbol for _, symbol, _ in module.variables[name].initial_symbols if symbol in module.functions)
    return found


def _list_symbols(operands: "Iterable[Operand | None]") -> list[str]:
    found = [operand.name for operand in operands if isinstance(operand, Symbol)]
    for operand in operands:
        if isinstance(operand, Vector):
            found.extend(one.name for one in operand.elements if isinstance(one, Symbol))
    return found
