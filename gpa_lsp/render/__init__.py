"""RENDER: a report → terminal text, SARIF, GitHub annotations, SASS listing. Rounds and scales; computes nothing."""
