"""``python -m vitlab``."""

import sys

from vitlab.commands import main

sys.exit(main())
