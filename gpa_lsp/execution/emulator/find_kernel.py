"""Which kernel of a module somebody means: :func:`find_kernel`."""

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule
from gpa_lsp.foundation.errors import InputError


def find_kernel(module: PtxModule, name: str) -> PtxFunction:
    """The kernel of a mangled, readable or bare name (``saxpy``, without arguments, scopes and template arguments).

    Raises:
        InputError: there is none, or several; lists them.
    """
    entries = {entry.name: entry for entry in module.entries}
    if name in entries:
        return entries[name]
    readable = {mangled: demangle(mangled) for mangled in entries}
    for simplify in (_squeeze, _without_arguments, bare_name):
        found = [mangled for mangled, text in readable.items() if simplify(text) == simplify(name)]
        if len(found) == 1:
            return entries[found[0]]
        if found:
            listed = ", ".join(sorted(readable[mangled] for mangled in found))
            raise InputError(
                f"{name} is the name of {len(found)} kernels",
                path=module.name,
                remedy=f"give one of them in full: {listed}",
            )
    listed = ", ".join(sorted(readable.values())[:20]) or "none"
    raise InputError(f"no kernel {name}", path=module.name, remedy=f"its kernels are: {listed}")


def _squeeze(name: str) -> str:
    return name.replace(" ", "")


def _without_arguments(name: str) -> str:
    """Without what follows the closing name: arguments and the result before it."""
    text = name.removeprefix("void ").strip()
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth <= 0 and not text.startswith("(anonymous", place):
            return _squeeze(text[:place])
    return _squeeze(text)


def bare_name(name: str) -> str:
    """Without arguments, template arguments and scopes.

    >>> bare_name("void outer::kernel<int, 3>(float*)")
    'kernel'
    """
    text = _without_arguments(name)
    depth, kept = 0, []
    for letter in text:
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
        elif depth <= 0:
            kept.append(letter)
    return "".join(kept).rpartition("::")[2]
