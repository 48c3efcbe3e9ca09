"""The graph: nodes, operator objects, dtypes, index expressions, verifier, reference."""
