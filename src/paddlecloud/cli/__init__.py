"""For people: the command `paddlecloud`. Data goes to stdout, talk to stderr."""
