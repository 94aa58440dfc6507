"""PARSE: the text of a source file → what a line of it loads, stores, divides and calls, for hints that name the code they are about."""
