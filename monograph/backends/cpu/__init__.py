"""The CPU: LLVM kernels and oneDNN primitives in one flat native program."""
