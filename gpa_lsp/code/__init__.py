"""Programs as they are written and compiled: containers and SASS, PTX, sources, control flow and the addresses of accesses. Nothing here has a
launch, a sample or a GPU."""
