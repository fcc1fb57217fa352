"""``python -m variegate.cli``, as ``python -m variegate``."""

import sys

from variegate.cli import main

if __name__ == "__main__":
    sys.exit(main())
