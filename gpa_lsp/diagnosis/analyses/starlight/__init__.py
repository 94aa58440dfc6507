"""Starlight's table of suggestions and its estimates, as its paper gives them, set beside our own advice."""
