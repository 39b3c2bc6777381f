"""What the torch backend says of itself; imports no torch."""

from warfence.backend_package import BackendPackage, Framework, Variable

PACKAGE = BackendPackage(
    name="torch",
    factory="warfence_torch.backend:TorchBackend",
    title="PyTorch",
    order=10,
    devices=("cpu", "cuda"),
    options={"ticket": ("event", "value")},
    replay={"cpu": "warfence_torch.tools.replay:on_cpu", "cuda": "warfence_torch.tools.replay:on_cuda"},
    framework=Framework(
        module="torch",
        install="pip install 'warfence[torch]'",
        devices="warfence_torch.tools.devices:devices",
        requirements={"torch": ("torch>=2.8",)},
        on_device={"cuda": ("cuda-bindings>=13,<14", "cuda-core>=1,<2")},
        variables=(
            Variable(
                "CUDA_LAUNCH_BLOCKING",
                "1: every kernel launch blocks the host, so nothing overlaps: races disappear, and so does the gain.",
            ),
            Variable(
                "PYTORCH_NO_CUDA_MEMORY_CACHING",
                "1: freed memory goes back to the driver, which synchronises: it hides races on recycled memory.",
            ),
            Variable(
                "OMP_NUM_THREADS",
                "Threads of one torch operation on CPU; set 1 when lanes should overlap on few cores.",
            ),
        ),
    ),
)
