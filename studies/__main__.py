import sys

from studies.runner.command import main

if __name__ == "__main__":  # each process that trains imports this file
    sys.exit(main())
