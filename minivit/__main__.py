"""``python -m minivit``."""

import sys

try:
    from minivit.cli import main
except ImportError as error:
    print(f'error: {error}. Try: pip install "minivit[train]"', file=sys.stderr)
    sys.exit(2)

sys.exit(main())
