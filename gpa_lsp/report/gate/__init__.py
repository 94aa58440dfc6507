"""Budgets of a project: kernels before and after a change → which budget is exceeded, and on which line."""
