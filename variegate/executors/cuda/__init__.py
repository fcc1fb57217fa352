"""The CUDA executor: packs fused programs for the device and runs them there by Triton kernels."""
