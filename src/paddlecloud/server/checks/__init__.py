"""What `paddlecloud doctor` looks at on a server's machine, by subject: each check only looks, and gives findings."""
