"""The command line: `python -m benchmarks VERB`, or `./reproduce.sh VERB`."""

import sys

from benchmarks.cli.main import begin, main

if __name__ == "__main__":
    begin()
    sys.exit(main())
