"""Tables on the device: memory that JAX reads and streams of our own write, fenced by words. Needs cuda-bindings."""
