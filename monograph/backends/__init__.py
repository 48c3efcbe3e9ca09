"""Backends: what runs programs. Each states what it can do, compiles, allocates and launches."""
