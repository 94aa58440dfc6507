"""Repeatable benchmarks. They print figures and ratios and assert nothing about time: run one with ``python -m tests.bench.<name>``."""
