"""Axes of the block that an index depends on, by what stands above its line."""

import pytest

from gpa_lsp.code.sources.line_parts import find_thread_axes

SOURCE = """
__global__ void product(const float* a, const float* b, float* c, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  int first = row * n;  // threadIdx.z is spoken of, not used
  const float* moved = a;
  moved += min(column, n);
  for (int k = 0; k < n; ++k)
    sum += a[row * n + k] * b[k * n + column];
  int late = threadIdx.z;
}
"""


@pytest.mark.parametrize(
    ("expression", "axes"),
    [
        ("a[row * n + k]", "y"),
        ("b[k * n + column]", "x"),
        ("a[first + k]", "y"),
        ("moved[first]", "xy"),
        ("a[threadIdx.z]", "z"),
        ("a[late]", ""),
        ("weights[k]", ""),
    ],
)
def test_every_value_a_name_was_given_above_counts(expression: str, axes: str) -> None:
    assert find_thread_axes(SOURCE, 8, expression) == set(axes)


def test_names_given_by_each_other_come_to_an_end() -> None:
    assert find_thread_axes("a = b + threadIdx.x; b = a;", 1, "x[a]") == {"x"}
