"""Settings of Hypothesis: each run tries the same examples, and however slow the machine is, none of them fails for its
time.
"""
from hypothesis import HealthCheck, settings


def steady(**options):
    """Decorate a test that is given examples; `options` go to `hypothesis.settings`."""
    return settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], **options)
