"""The `monograph` command: `monograph doctor` and `monograph demo`."""
