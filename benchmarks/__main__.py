"""The command line: `python -m benchmarks VERB`, or `./reproduce.sh VERB`."""

import sys

from benchmarks.cli.process import begin

if __name__ == "__main__":
    begin()
    # Only now, when an interrupt does no harm. Worker processes do not need it.
    from benchmarks.cli.main import main

    sys.exit(main())
