"""What runs after the compiler is done: native code, memory, flat programs, one executor thread.

`native` turns LLVM IR text into callable addresses, `openmp` splits loops over threads, `memory`
lends aligned blocks, `program` lays instructions out as one native table, and `executor` runs such
tables in the only thread that ever enters OpenMP. Nothing here knows about graphs,
tensors or operators.
"""
