"""ADVISE: a blamed kernel → ranked advice. Optimizers match, estimators price."""
