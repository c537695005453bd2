"""One module for each generated page: `page()` is its text."""
