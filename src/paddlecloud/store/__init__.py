"""Stores the records of jobs and users in one crash-safe database."""
