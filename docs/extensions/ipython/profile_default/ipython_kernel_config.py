"""Kernels of lessons: only errors are told, and only this machine connects to them."""

c = get_config()  # noqa: F821
c.IPKernelApp.log_level = "ERROR"
