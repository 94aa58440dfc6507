"""REWRITE: advice and the text it is about → edits a person can take or leave. Knows no editor."""
