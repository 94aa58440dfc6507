"""Options of Numba's ``@cuda.jit``."""

from gpa_lsp.code.sources.trees import read_text, walk_lines
from gpa_lsp.diagnosis.rewrites.edits import insert_behind, replace_node
from gpa_lsp.diagnosis.rewrites.model import Site, TextEdit
from gpa_lsp.diagnosis.rewrites.python_functions import (
    NUMBA_KERNEL,
    PythonFunction,
    find_argument,
    find_compiled,
    find_compiled_around,
    list_arguments,
)


def find_numba_kernel(site: Site) -> PythonFunction | None:
    """The Numba kernel a site is about: the one of its name, else the one around its lines; device functions have no options of their own."""
    named = find_compiled(site.tree, site.context.kernel) if site.context.kernel else ()
    near = (find_compiled_around(site.tree, node) for node in walk_lines(site.tree.root, site.lines))
    found = named[0] if len(named) == 1 else next((one for one in near if one is not None), None)
    if found is None or found.compiler != NUMBA_KERNEL or _is_device_function(found):
        return None
    return found


def _is_device_function(function: PythonFunction) -> bool:
    device = find_argument(function.decorator, "device")
    return device is not None and read_text(device) != "False"


def add_jit_option(site: Site, function: PythonFunction, name: str, value: str) -> TextEdit | None:
    """The decorator with one more option; None where it has it, or may have it in a dictionary that is spread out."""
    decorator = function.decorator
    if decorator.type != "call":
        return insert_behind(site.tree, decorator, f"({name}={value})")
    given = list_arguments(decorator)
    if find_argument(decorator, name) is not None or any("splat" in one.type for one in given):
        return None
    if given:
        return insert_behind(site.tree, given[-1], f", {name}={value}")
    arguments = decorator.child_by_field_name("arguments")
    return None if arguments is None else replace_node(site.tree, arguments, f"({name}={value})")
