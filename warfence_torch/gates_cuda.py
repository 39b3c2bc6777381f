"""Gates on torch's streams (`warfence.host.cuda_gates`)."""

from __future__ import annotations

import torch

from warfence.host.cuda_gates import StreamGates


class CudaGates(StreamGates):
    """Gates of one captured forward."""

    def capture(self, position: str, stream: torch.cuda.Stream) -> None:
        """Put the gate on a stream, inside a capture or not."""
        self.stand(position, stream.cuda_stream)
