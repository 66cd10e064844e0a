"""The same as the `counterfoil` script, for `python -m counterfoil.cli`."""

from __future__ import annotations

import sys

from counterfoil.cli import main

if __name__ == "__main__":
    sys.exit(main())
