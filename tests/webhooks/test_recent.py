"""The memory for doubled deliveries forgets: by age and by number."""

from prefect_assay.webhooks.recent import Recent


def test_members_expire():
    recent = Recent(seconds=10)
    recent.add("a", 100.0)
    assert recent.has("a", 109.9)
    assert not recent.has("a", 110.0)
    assert not recent.has("b", 100.0)


def test_the_oldest_make_room():
    recent = Recent(kept=2)
    for now, key in enumerate("abac"):
        recent.add(key, float(now))
    assert [key for key in "abc" if recent.has(key, 4.0)] == ["a", "c"]
