"""Listings that several rooms share, in the notation of :mod:`tests.rows.written`, shaped as compilers write them; ``<- 2`` names the row to blame.

Markdown files begin a listing with them as ``@DIVISION``.
"""

# A division of doubles in rows 1 to 17 but row 4, which is other work; rows 20 to 22 are the routine. What waits for the load is no part of it.
DIVISION = """
        B-:R-:W2:-:S02  LDG.E.64 R18, [R16.64]                                  # k.cu:3 | selected=1 | x=100
        B-:R-:W-:-:S01  BSSY B6, join                                           # k.cu:4 | selected=1 | x=100
        B-:R-:W0:-:S01  MUFU.RCP64H R7, R23                                     # k.cu:4 | selected=1 | x=100
        B-:R-:W-:-:S01  MOV R6, 0x1                                             # k.cu:4 | selected=1 | x=100
        B-:R-:W-:-:S01  IADD3 R30, R30, 0x1, RZ                                 # k.cu:5 | selected=7 | x=100
        B0:R-:W0:-:S08  DFMA R8, -R22, R6, 1                                    # k.cu:4 | short_scoreboard=9 selected=1 | x=100 <- 2
        B0:R-:W0:-:S08  DFMA R10, R8, R8, R8                                    # k.cu:4 | wait=8 | x=100
        B0:R-:W0:-:S08  DFMA R6, R6, R10, R6                                    # k.cu:4 | wait=8 | x=100
        B02:R-:W0:-:S08 DMUL R8, R18, R6                                        # k.cu:4 | long_scoreboard=500 wait=8 | x=100 <- long_scoreboard: 0
        B0:R-:W0:-:S08  DFMA R10, -R22, R8, R18                                 # k.cu:4 | wait=8 | x=100
        B0:R-:W0:-:S08  DFMA R4, R6, R10, R8                                    # k.cu:4 | wait=8 | x=100
        B0:R-:W-:-:S05  FFMA R0, RZ, R23, R5                                    # k.cu:4 | wait=8 | x=100
        B-:R-:W-:-:S07  FSETP.GTU.AND P1, PT, |R19|, 6.5827683646048100446e-37, PT   # k.cu:4 | selected=1 | x=100
        B-:R-:W-:-:S12  FSETP.GT.AND P0, PT, |R0|, 1.469367938527859385e-39, PT # k.cu:4 | selected=1 | x=100
        B-:R-:W-:-:S05  @P0 BRA P1, join                                        # k.cu:4 | wait=12 | x=100
        B-:R-:W-:-:S05  MOV R20, 0x100                                          # k.cu:4 | selected=2 | x=25
        B-:R-:W-:-:S05  CALL.REL.NOINC $__internal_0_$__cuda_sm20_div_rn_f64_full   # k.cu:4 | wait=4 | x=25
    join:
        B-:R-:W-:-:S05  BSYNC B6                                                # k.cu:4 | branch_resolving=6 | x=100
        B-:R-:W-:-:S02  STG.E.64 [R24.64], R4                                   # k.cu:6 | wait=20 | x=100 <- 10
        B-:R-:W-:-:S05  EXIT                                                    # k.cu:7 | selected=1 | x=100
    $__internal_0_$__cuda_sm20_div_rn_f64_full:
        B-:R-:W0:-:S01  MUFU.RCP64H R11, R23                                    # - | selected=30 | x=25
        B0:R-:W-:-:S08  DFMA R4, R10, R10, R4                                   # - | short_scoreboard=60 | x=25 <- 20
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0                                   # - | wait=10 | x=25
"""

DIVISION_ROWS = {1, 2, 3, *range(5, 15), 17}
DIVISION_CALL_ROWS = {15, 16}
ROUTINE_ROWS = range(20, 23)

# One reciprocal before a loop, one quotient a turn in it: rows 0 to 17. Row 18 uses the quotient, rows 19 to 21 count.
INTEGER_DIVISION = """
        B-:R-:W0:-:S01  I2F.U32.RP R8, R20                                      # k.cu:4 | selected=1
        B-:R-:W-:-:S01  ISETP.NE.U32.AND P2, PT, R20, RZ, PT                    # k.cu:4 | selected=1
        B0:R-:W0:-:S01  MUFU.RCP R8, R8                                         # k.cu:4 | short_scoreboard=30
        B-:R-:W-:-:S01  IMAD.MOV.U32 R4, RZ, RZ, RZ                             # k.cu:4 | selected=1
        B0:R-:W-:-:S04  IADD3 R9, R8, 0xffffffe, RZ                             # k.cu:4 | short_scoreboard=30
        B-:R-:W0:-:S02  F2I.FTZ.U32.TRUNC.NTZ R5, R9                            # k.cu:4 | selected=1
        B0:R-:W-:-:S04  IADD3 R11, RZ, -R5, RZ                                  # k.cu:4 | short_scoreboard=30
        B-:R-:W-:-:S04  IMAD R11, R11, R20, RZ                                  # k.cu:4 | wait=4
        B-:R-:W-:-:S04  IMAD.HI.U32 R6, R5, R11, R4                             # k.cu:4 | wait=4
    loop:
        B-:R-:W-:-:S04  IMAD.HI.U32 R9, R6, R7, RZ                              # k.cu:5 | wait=4
        B-:R-:W-:-:S04  IMAD.MOV R12, RZ, RZ, -R9                               # k.cu:5 | wait=4
        B-:R-:W-:-:S05  IMAD R12, R12, R20, R7                                  # k.cu:5 | wait=4
        B-:R-:W-:-:S13  ISETP.GE.U32.AND P1, PT, R12, R20, PT                   # k.cu:5 | wait=4
        B-:R-:W-:-:S02  @P1 IADD3 R12, R12, -R20, RZ                            # k.cu:5 | wait=12
        B-:R-:W-:-:S02  @P1 IADD3 R9, R9, 0x1, RZ                               # k.cu:5 | selected=1
        B-:R-:W-:-:S13  ISETP.GE.U32.AND P0, PT, R12, R20, PT                   # k.cu:5 | wait=4
        B-:R-:W-:-:S04  @P0 IADD3 R9, R9, 0x1, RZ                               # k.cu:5 | wait=12
        B-:R-:W-:-:S05  @!P2 LOP3.LUT R9, RZ, R20, RZ, 0x33, !PT                # k.cu:5 | wait=4
        B-:R-:W-:-:S05  IMAD R7, R7, 0x19660d, R9                               # k.cu:6 | wait=4
        B-:R-:W-:-:S04  IADD3 R15, R15, 0x1, RZ                                 # k.cu:5 | selected=1
        B-:R-:W-:-:S13  ISETP.NE.AND P3, PT, R15, 0x10, PT                      # k.cu:5 | wait=4
        B-:R-:W-:-:S05  @P3 BRA loop                                            # k.cu:5 | wait=12
        B-:R-:W-:-:S02  STG.E [R24.64], R7                                      # k.cu:7 | selected=1
        B-:R-:W-:-:S05  EXIT                                                    # k.cu:7 | selected=1
"""

INTEGER_DIVISION_ROWS = set(range(18))

# The literals of a product and a sum are double
WIDENED = """
    loop:
        F2F.F64.F32 R2, R13                 # k.cu:2 | short_scoreboard=10
        DFMA R2, R2, R10, c[0x2][0x0]       # k.cu:2 | short_scoreboard=30
        F2F.F32.F64 R13, R2                 # k.cu:2 | short_scoreboard=50
        IADD3 R5, R5, 0x1, RZ               # k.cu:3 | selected=3
        ISETP.NE.AND P0, PT, R5, 0x20, PT   # k.cu:3 | wait=5
        @P0 BRA loop                        # k.cu:3 | wait=12
        STG.E [R6.64], R13                  # k.cu:4 | selected=4
        EXIT                                # k.cu:5
"""

DOUBLE = """
    loop:
        B-:R-:W-:-:S08  DFMA R2, R2, R4, R6     # k.cu:2 | math_pipe_throttle=40 wait=7 selected=2 not_selected=5
        B-:R-:W-:-:S08  DADD R2, R2, R8         # k.cu:3 | math_pipe_throttle=30 wait=7 selected=2 <- wait: 0
        B-:R-:W-:-:S13  ISETP.NE.AND P0, PT, R10, RZ, PT   # k.cu:1 | wait=7 <- 1
        B-:R-:W-:-:S05  @P0 BRA loop            # k.cu:1 | wait=12
        B-:R-:W-:-:S05  EXIT                    # k.cu:4
"""

SPILL = """
        B-:R-:W-:-:S04  FFMA R9, R2, R3, R4         # k.cu:3 | selected=2
        B-:R0:W-:-:S02  STL [R1+0x8], R9            # k.cu:3 | lg_throttle=6 selected=1
    loop:
        B-:R-:W2:-:S02  LDL.LU R5, [R1+0x8]         # k.cu:6 | lg_throttle=10 selected=4
        B2:R-:W-:-:S04  FADD R6, R5, R6             # k.cu:6 | long_scoreboard=200/150 selected=4 <- 2
        B-:R-:W-:-:S13  ISETP.NE.AND P0, PT, R7, RZ, PT   # k.cu:5 | wait=4
        B-:R-:W-:-:S05  @P0 BRA loop                # k.cu:5 | wait=12
        B-:R-:W-:-:S05  EXIT                        # k.cu:8 | selected=2
"""

ARRAY = """
        B-:R0:W-:-:S02  STL.128 [R1], RZ            # k.cu:3 | lg_throttle=2
        B-:R-:W-:-:S04  IADD3 R7, R1, R2, RZ        # k.cu:4 | selected=1
        B-:R-:W2:-:S02  LDL R5, [R7]                # k.cu:4 | selected=3
        B2:R-:W-:-:S04  IADD3 R5, R5, 0x1, RZ       # k.cu:4 | long_scoreboard=90 <- 2
        B-:R0:W-:-:S02  STL [R7], R5                # k.cu:4 | selected=3
        B-:R-:W2:-:S02  LDL R6, [R1+0x4]            # k.cu:6 | selected=1
        B2:R-:W-:-:S02  STG.E [R10.64], R6          # k.cu:6 | long_scoreboard=20 <- 5
        B-:R-:W-:-:S05  EXIT                        # k.cu:7
"""

SAVED = """
        B-:R-:W-:-:S05  CALL.REL.NOINC $k$_Z4leafv  # k.cu:3 | selected=1
        B-:R-:W-:-:S05  EXIT                        # k.cu:4
    $k$_Z4leafv:
        B-:R-:W-:-:S04  IADD3 R1, R1, -0x10, RZ     # k.cu:8 | selected=1
        B-:R0:W-:-:S02  STL [R1+0x4], R16           # k.cu:8 | lg_throttle=5
        B-:R-:W-:-:S04  IADD3 R16, R2, 0x1, RZ      # k.cu:9 | selected=1
        B-:R-:W2:-:S02  LDL R16, [R1+0x4]           # k.cu:10 | selected=1
        B2:R-:W-:-:S05  RET.REL.NODEC R20 0x0       # k.cu:10 | long_scoreboard=70 <- 5
"""
