"""What PyTorch's tree has and this package has not by itself: a small file per subject.

`monograph/torch/names.py` says which module of the tree shows which of them.
"""
