"""The same as the `counterfoil-lab` script, for `python -m counterfoil.lab`."""

from __future__ import annotations

import sys

from counterfoil.lab import main

if __name__ == "__main__":
    sys.exit(main())
