"""Records: what is known about jobs and users, in one database that survives a crash."""
