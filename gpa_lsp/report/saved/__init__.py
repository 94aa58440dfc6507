"""SAVE: a report ↔ JSON, and the reports that were analysed before in the user's cache."""
