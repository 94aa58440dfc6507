"""Lines and places: where what was measured on a line is now, in an open document, in a file, in a SASS document."""
