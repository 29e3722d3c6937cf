"""The calls of the service by resource: each method builds its request, hands it to a sender, and returns what it read.

Nothing here knows httpx. A method checks its arguments and raises `InvalidRequest` before anything is sent. Calls that change
something are sent once.
"""
