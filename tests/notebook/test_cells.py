"""Texts of a cell that a compiler may have been given, and the cells that a cell needs."""

from gpa_lsp.notebook.cells import Cell, choose_needed, list_texts, read_cell

RAW_KERNEL = 'import cupy\ncode = r"""\n__global__ void k(float* x)\n{ x[0] = 1; }\n"""\nk = cupy.RawKernel(code, "k")'


def name_cell(text: str) -> str:
    return f"/tmp/ipykernel_1/{len(text)}.py"


def test_a_string_with_a_kernel_is_a_text_of_its_own() -> None:
    whole, string = list_texts(read_cell(1, RAW_KERNEL), name_cell)
    assert (whole.lines_before, f"{len(RAW_KERNEL)}.py" in whole.file_names) == (0, True)
    assert string.is_string
    lines = RAW_KERNEL.split("\n")
    place = string.text.split("\n").index("{ x[0] = 1; }") + 1
    assert lines[place + string.lines_before - 1] == "{ x[0] = 1; }"


def test_below_our_magic_lines_begin_one_later() -> None:
    whole, string = list_texts(read_cell(1, f"%%gpa --measure\n{RAW_KERNEL}"), name_cell)
    assert (whole.text, whole.lines_before) == (RAW_KERNEL, 1)
    assert string.lines_before == 2


def test_strings_whose_lines_are_not_lines_of_the_cell_are_left_out() -> None:
    escaped = 'code = "__global__ void k() {\\n}\\n"'
    assert [text.is_string for text in list_texts(read_cell(1, escaped), name_cell)] == [False]


def test_cells_of_other_languages_have_no_text() -> None:
    assert list(list_texts(read_cell(1, "%%bash\nnvcc k.cu"), name_cell)) == []


def test_a_percent_that_begins_a_line_of_python_stays() -> None:
    text = "x = (7\n% 4)"
    assert read_cell(1, text).python == text


def find_needed(*texts: str) -> list[int]:
    cells: list[Cell] = [read_cell(number, text) for number, text in enumerate(texts, 1)]
    return [cell.number for cell in choose_needed(cells[-1], cells[:-1])]


def test_a_cell_needs_what_gave_its_names_their_values() -> None:
    assert find_needed("import numpy as np", "n = 4", "y = 2", "x = np.zeros(n)", "x.sum()") == [1, 2, 4]


def test_the_last_value_counts() -> None:
    assert find_needed("n = 4", "n = 8", "print(n)") == [2]
    assert find_needed("n = 4", "n = n + 4", "print(n)") == [1, 2]


def test_functions_classes_and_imports_bind_names() -> None:
    assert find_needed("def f(): pass", "class C: pass", "from os import path as p", "f(), C(), p") == [1, 2, 3]
    assert find_needed("%%bash\nls", "1 / 0 if False else 1") == []
