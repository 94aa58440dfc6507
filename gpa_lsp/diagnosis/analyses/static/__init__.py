"""Facts of a kernel's code alone, without measurements: the registers, memory and occupancy of a kernel as compiled.

Findings on lines come one floor up, from :mod:`gpa_lsp.diagnosis.advice.static_checks`.
"""
