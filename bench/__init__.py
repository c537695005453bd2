"""Benchmarks against a baseline or another product in the same run; each prints one table and a ratio."""
