"""Graph to graph: the derivative, and the inversion of index maps that it rests on."""
