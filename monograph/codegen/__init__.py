"""Kernels to text: the kernel form, and its emitters for LLVM and Triton."""
