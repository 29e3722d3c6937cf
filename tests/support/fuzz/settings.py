"""Settings of the fuzzers in tests/fuzz: new examples every time, as many as the time allows.

A fuzzer looks like this, and ends by itself:

    def test_fuzz_the_reader(again_and_again):
        @FUZZ
        @given(st.text())
        def check(text): ...

        again_and_again(check)
"""

from hypothesis import HealthCheck, Phase, settings

FUZZ = settings(
    max_examples=1_000,
    derandomize=False,
    database=None,
    print_blob=True,
    phases=(Phase.generate, Phase.target, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
