"""oneDNN for the CPU: matrix products, convolutions and the copies that pack their weights.

Each function takes tensor specs and returns a `Primitive`, which native code executes through
`function_addresses`, or None where oneDNN is absent or has no fast code: then use loops. Nothing
is loaded before the first call. `find_library` explains what is missing.
"""

from .conv import convolution
from .descriptor import MemoryDescriptor, TensorSpec, layout_number
from .gemm import matmul, packed_matmul
from .library import LibraryReport, OneDNNError, find_library, function_addresses
from .pack import reorder
from .plan import Step, convolution_plan
from .primitive import Primitive
from .trial import probe

__all__ = [
    "LibraryReport",
    "MemoryDescriptor",
    "OneDNNError",
    "Primitive",
    "Step",
    "TensorSpec",
    "convolution",
    "convolution_plan",
    "find_library",
    "function_addresses",
    "layout_number",
    "matmul",
    "packed_matmul",
    "probe",
    "reorder",
]
