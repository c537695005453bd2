"""The HTTP side: it translates requests into calls and records into answers, and decides nothing about running jobs."""
