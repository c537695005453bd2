"""Where tasks run: one file for each kind of cluster, none of which knows another."""
