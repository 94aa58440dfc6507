"""How many warps an SM holds, what limits them, and what more would be worth."""
