"""Clients older than us, each in its own language: a dialect translates, and decides nothing."""
