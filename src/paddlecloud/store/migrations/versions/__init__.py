"""One file for each change of the tables, numbered in the order they are applied."""
