"""SERVE agents: short answers with ids to ask further, over the Model Context Protocol."""
