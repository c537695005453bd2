"""On the node: what runs one task. Standard library only, Python 3.8+, nothing of ours, so that it can ship alone."""
