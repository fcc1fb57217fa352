"""Triton kernels. Their functions are compiled, not run: tensors in them have no Python types to annotate."""
