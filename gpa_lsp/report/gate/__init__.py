"""Whether a change keeps to the budgets of its project: kernels before and after → what exceeds which budget, and on which line."""
