"""Every operator, written once. A family per file; `define.py` says how one is declared."""
