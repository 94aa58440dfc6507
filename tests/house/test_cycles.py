"""Modules do not import themselves in a roundabout way: imports inside functions and those for types alone count, too."""

from graphlib import TopologicalSorter

import grimp


def test_modules_import_each_other_in_one_direction() -> None:
    graph = grimp.build_graph("gpa_lsp")
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert sum(map(len, imports.values())) > 2 * len(imports)
    TopologicalSorter(imports).prepare()  # names a cycle if there is one
