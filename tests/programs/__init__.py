"""Programs that run without a GPU."""
