"""For programs: the client, the profile it takes its server from, and the folders it sends and brings back."""
