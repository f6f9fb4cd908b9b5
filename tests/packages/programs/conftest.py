"""Programs that other tests run: nothing to collect here."""
collect_ignore_glob = ["*.py"]
