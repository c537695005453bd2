"""The modules of examples/plsc that need no PaddlePaddle, as tests import them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

JOB = Path(__file__).parents[3] / "examples" / "plsc" / "job"
sys.path.append(str(JOB))

checkpoint: Any = importlib.import_module("checkpoint")
shards: Any = importlib.import_module("shards")
tensor_file: Any = importlib.import_module("tensor_file")
