"""PARSE: the text of a source file → what a line of it does, and what the text proves about names, types, uses and loops."""
