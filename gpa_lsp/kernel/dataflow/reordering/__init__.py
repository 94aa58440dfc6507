"""Which instructions could change places: what each reads, writes and orders, the courses they are gone through on, and what holds them."""
