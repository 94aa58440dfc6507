"""How full warps are: idle and switched-off lanes by line."""
