"""Text, Markdown, HTML, SARIF and JSON for people and programs: one model of blocks, views that build it, writers that print it."""
