"""The table of operator records: what each operator is compared with, and on which inputs.

A `Record` names an operator, says how Monograph and how PyTorch call it, and yields samples. In a
sample every float64 array is an input that takes the dtype under test and is differentiated; other
arrays (indices, masks) stay as they are, and all else is an argument. `test_operators.py` turns the
table into tests; to test a new operator, add a line to its family's file.
"""

# The samples of all files are drawn from one generator, in this order.
# isort: off
from . import pointwise
from . import operands
from . import reductions
from . import shapes
from . import indices
from . import layers

# isort: on
from .record import RECORDS, Record, Sample
