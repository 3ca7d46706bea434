"""Realised false alarms of default models on ordinary tables: ``python -m benchmarks.alarms``."""
