"""One running lab: its parts wired together, its seed, and what tests do to it (faults, rate limit, snapshots).

Knows nothing of HTTP; `lab.web` carries requests to `LabCore.perform`.
"""
