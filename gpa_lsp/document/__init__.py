"""What a person or a program reads: text, Markdown, HTML, SARIF and JSON."""
