"""Bytes: what users upload and what their jobs leave behind."""
