"""warfence on torch: host lanes on CPU, streams and captured graphs on CUDA."""
