"""Diagnosis of a kernel: blame, the limiter and the other questions, optimizers with their prices, and rewrites of the source."""
