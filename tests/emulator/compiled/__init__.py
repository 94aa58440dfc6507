"""The compiled core does what the numpy engine does."""
