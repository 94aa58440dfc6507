"""Instructions that could change places: their reads, writes and orderings, the courses they are on, and the obstacles between them."""
