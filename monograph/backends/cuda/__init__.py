"""The CUDA backend: Triton compiles kernels, cuBLASLt multiplies matrices, cuda-core launches.

`program` turns a plan into calls, `matmul` decides which contractions the library takes, and
`compile` makes machine code: none of them needs a GPU. `device`, `launch`, `memory`, `cublas` and
`backend`, which puts all together, need cuda-core and a driver.
"""
