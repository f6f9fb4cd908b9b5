"""Scripts that run for hours, `make campaign`, and the tests that run a little of each."""
from pathlib import Path

collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")]
