"""AWS Lambda Powertools as its documentation has it outside of DynamoDB: `idempotent_function` on the Redis layer.

``python on_powertools.py redis SOCKET``.
"""

from __future__ import annotations

import sys
from typing import Any

import driven
import redis
from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.persistence.cache import CachePersistenceLayer


def main() -> None:
    """Serve."""
    answers = driven.own_output()
    layer = CachePersistenceLayer(client=redis.Redis(unix_socket_path=sys.argv[2], decode_responses=True))
    config = IdempotencyConfig(event_key_jmespath="order_id")

    @idempotent_function(data_keyword_argument="order", persistence_store=layer, config=config)
    def refund(order: dict[str, Any]) -> dict[str, str]:  # noqa: ARG001
        return driven.RESULT

    def call(key: str) -> Any:  # noqa: ANN401
        order = {"order_id": key, "amount": driven.AMOUNT, "currency": driven.CURRENCY, "memo": driven.MEMO}
        return refund(order=order)

    driven.serve("aws-lambda-powertools", answers, call=call)


main()
