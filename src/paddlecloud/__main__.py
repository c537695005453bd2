"""`python -m paddlecloud` is the command `paddlecloud`."""

from __future__ import annotations

import sys

from paddlecloud.cli.main import main

sys.exit(main())
