"""LOOK UP: a GPU → its roofs, theoretical or measured, with the clocks they hold at."""
