"""Ten stories, a file each: what befalls a campaign in two weeks, played with real processes that are really killed.

Server, laboratory, receiver and worker are those of one installation; each story has an organization, an archive and blocks of its
own (`support/stories/world.py`). The laboratory's journal and the archive judge its end (`support/stories/judge.py`): every design
is ordered once, each invoice is paid once, the right protein is measured, its results are archived, and the ledgers agree.
"""
