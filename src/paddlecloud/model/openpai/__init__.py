"""OpenPAI's two job protocols as jobs of ours: pure, so that the command and the server understand a file alike."""
