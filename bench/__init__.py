"""Measurements beside a floor or a peer, in the same run: each prints one table and a ratio."""
