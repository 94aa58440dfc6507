"""Errors, numbers, prose, catalogues, the cache and child processes: what every wing stands on and none of it knows of GPUs."""
