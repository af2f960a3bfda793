"""The command line: `python -m benchmarks VERB`, or `./reproduce.sh VERB`."""

import sys

from benchmarks.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
