"""MEASURE: the user's command → a profile on disk. Starts nothing the user did not allow."""
