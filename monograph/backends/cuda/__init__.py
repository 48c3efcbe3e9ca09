"""The CUDA backend: Triton compiles kernels, cuda-core loads and launches them.

`compile` needs Triton but no GPU; `device` and `launch` need cuda-core and a driver.
"""
