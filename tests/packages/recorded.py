"""A plugin of pytest: run one test in `EVERY`, and append to the file `REPORT` a line of JSON for each that is done."""
import json
import os
import zlib

EVERY, REPORT = int(os.environ.get("EVERY", "1")), os.environ.get("REPORT", os.devnull)
_worst = {}


def pytest_collection_modifyitems(config, items):
    """Keep the tests whose name has a checksum that EVERY divides: the choice depends on no other test."""
    kept = [item for item in items if zlib.crc32(item.nodeid.encode()) % EVERY == 0]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_runtest_logreport(report):
    """Note the worst of set-up, call and tear-down, and write it after the tear-down."""
    if report.outcome != "passed" or report.nodeid not in _worst:
        _worst[report.nodeid] = report.outcome, _last(report)
    if report.when == "teardown":
        with open(REPORT, "a", encoding="utf-8") as file:
            file.write(json.dumps([report.nodeid, *_worst.pop(report.nodeid)]) + "\n")


def _last(report):
    """Return the error's first line, or why a test was left out."""
    if report.outcome == "passed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr).strip()
    return (text.splitlines() or [""])[0][:300]
