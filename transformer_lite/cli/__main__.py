"""``python -m transformer_lite.cli``."""

import sys

from transformer_lite.cli import main

sys.exit(main())
