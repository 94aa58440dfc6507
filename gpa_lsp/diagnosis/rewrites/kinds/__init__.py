"""The kinds of rewrites, one file per subject: each defines ``REWRITES``, name → :class:`~gpa_lsp.diagnosis.rewrites.model.RewriteKind`.

A kind proposes only what the text of the file proves applicable. Text that did not parse around the place, names that are macros, and types
that only a header knows prove nothing, and nothing is proposed then.
"""
