"""The parity suite as pytest: any backend, the same laws. `pytest --pyargs parity_tests --backend NAME`."""
