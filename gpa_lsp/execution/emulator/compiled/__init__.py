"""The schedule of one batch in the compiled core; what it does not know runs in the numpy engine, lanes for lanes the same.

Every lane has its registers in the *frame* of its warp, so lanes that part and meet again move nothing. A kernel becomes *operations*; where one is
not known, or has something to report, the core stops, and the steps of the numpy engine are run on the very lanes.
"""
