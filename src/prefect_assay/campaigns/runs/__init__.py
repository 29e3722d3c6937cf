"""Flow runs of Prefect: finding, waking and starting them, their tags, and when they want to be woken.

Nothing here knows the service, orders or payments.
"""
