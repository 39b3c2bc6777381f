"""What the JAX backend says of itself; imports no JAX."""

from warfence.backend_package import BackendPackage, Framework, Variable

PACKAGE = BackendPackage(
    name="jax",
    factory="warfence_jax.backend:JaxBackend",
    title="JAX",
    order=20,
    devices=("cpu", "cuda"),
    unguarded={"tables": "aliased"},
    replay={"cpu": "warfence_jax.tools.replay:on_cpu"},
    options={
        "tables": ("donated", "aliased", "device"),
        "marker": ("cut", "word", "node"),
        "ticket": ("event", "value"),
    },
    compiles=True,
    framework=Framework(
        module="jax",
        install="pip install 'warfence[jax]'",
        devices="warfence_jax.tools.devices:devices",
        requirements={"jax": ("jax>=0.10",)},
        companions=("jaxlib",),  # jax brings it along; the pair must match, and bug reports need both
        install_on_device="pip install 'jax[cuda13]'",
        # On a machine with a GPU JAX would take most of the memory at its first use, which torch may need.
        environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        variables=(
            Variable(
                "JAX_DEBUG_NANS",
                "1: donation is off (a write lands in a new buffer) and every dispatch waits for its result.",
            ),
            Variable("JAX_DISABLE_JIT", "1: runs operation by operation: no executables, no cut, no donation."),
            Variable(
                "JAX_CPU_ENABLE_ASYNC_DISPATCH",
                "Does nothing as a variable (seen on JAX 0.10.2). As jax.config option, false: CPU dispatch blocks.",
            ),
            Variable(
                "XLA_PYTHON_CLIENT_PREALLOCATE",
                "Unset or true: JAX takes most of a GPU's memory at its first use; set false when torch shares the GPU.",
            ),
            Variable("XLA_FLAGS", "May change threads, streams and fusion: note it beside every number you report."),
        ),
    ),
)
