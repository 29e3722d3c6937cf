"""The control surface /_sim and its client: what a test may do to a running lab that the service does not offer.

`commands` lists the calls. `actions`, `deliveries` and `events` handle them in the lab's process, `client` sends them
from a test's; neither side imports the other, so this module imports none of them.
"""
