"""The pipeline from a recording to an executable program."""
