"""``python -m minivit``."""

import sys

from minivit.cli import main

sys.exit(main())
