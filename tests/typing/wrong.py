"""What `mypy --strict` must refuse: each line marked `# refused` is an error, and no other line is."""

from __future__ import annotations

from tests.typing.right import refund, refund_later

import counterfoil

refund("order-1042", "1500")  # refused
refund("order-1042")  # refused
result: dict[str, str] = refund("order-1042", 1500)  # refused
receipt: counterfoil.Receipt = refund_later("order-1042", 1500)  # refused
