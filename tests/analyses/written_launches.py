"""A small kernel whose launches are judged."""

TEXT = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]       # selected=10
    B2:R-:W-:-:S05  FFMA R2, R2, R2, 1      # long_scoreboard=80
    B-:R-:W-:-:S05  EXIT                    # selected=10
"""

NO_SHARED = {"launch__shared_mem_per_block_static": 0.0, "launch__shared_mem_per_block_dynamic": 0.0}
