"""Nsight Compute report files, chapter by chapter: framing, schema, metrics, samples, launches, rules, host context, modules, session.

The layout was worked out from reports (Nsight Compute 2019 to 2026.2, compute capability 6.1 to 12.0) by decoding them, comparing versions and
checking numbers against text exports. Neither NVIDIA's schema files nor NVIDIA's reader were used.
"""
