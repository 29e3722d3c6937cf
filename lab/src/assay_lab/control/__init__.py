"""The control surface /_sim and its client: what a test may do to a running lab that the service does not offer.

`commands` lists the calls; the lab's process handles them, `client` sends them, and neither side imports the other.
"""
