"""What the code of a kernel alone says, with nothing measured: the registers, memory and occupancy of a kernel as compiled.

Findings on lines come one floor up, from :mod:`gpa_lsp.diagnosis.advice.static_checks`.
"""
