"""The same refund as it is written every day: whatever is not an answer is tried again.

.venv/bin/counterfoil-lab certify -- .venv/bin/python examples/certify/naive.py
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from urllib.parse import urlsplit

TRIES = 3


def main() -> int:
    """Live once."""
    told = os.environ
    order = told["COUNTERFOIL_LAB_KEY"]
    body = json.dumps({"order": order, "amount": 1500})
    headers = {"Authorization": told["COUNTERFOIL_LAB_AUTHORIZATION"], "X-Client-Reference": order}
    seconds = float(told["COUNTERFOIL_LAB_DEADLINE_SECONDS"])
    for _ in range(TRIES):
        connection = http.client.HTTPConnection(urlsplit(told["COUNTERFOIL_LAB_URL"]).netloc, timeout=seconds)
        try:
            connection.request("POST", "/lookup/effects", body, headers)
            json.load(connection.getresponse())
        except (OSError, http.client.HTTPException, ValueError):
            continue  # "it failed": and here begins all the trouble
        finally:
            connection.close()
        print("succeeded")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
