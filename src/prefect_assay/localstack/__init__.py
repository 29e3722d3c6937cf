"""`LocalStack`: Prefect server, lab, webhook receiver and flows as processes of one machine, for the demo and tests.

It talks HTTP and must not import Prefect: a program that does, starts with `LocalStack.env`.
"""

from prefect_assay.localstack.stack import LocalStack

__all__ = ["LocalStack"]
