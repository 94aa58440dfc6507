"""SASS as a language: the documents ``gpa-sass:///…`` and what can be asked about them."""
