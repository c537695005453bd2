"""Stores the files that users upload and that their jobs write."""
