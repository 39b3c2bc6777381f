"""Public tools for testing backends: numpy kernels, the strict reference backend, and the laws. No pytest inside."""
