"""The same idea on a GPU of your own: one CUDA graph, an event node planted behind its last read, and three fences.

`python mini_fence_cuda.py` needs torch and a CUDA device, nothing of warfence. `mini_fence.py` is the story without either.
"""

import sys

import torch

RIGHT, WRONG = "slept", "barks"


def main() -> None:
    """Replay one graph behind each fence, overwrite its table meanwhile, and print text and times."""
    if not torch.cuda.is_available():
        sys.exit("mini_fence_cuda.py needs a CUDA device, and torch sees none; mini_fence.py needs only numpy")
    kv = torch.tensor([ord(c) for c in RIGHT + WRONG], device="cuda")  # [10] characters: five slots of each request
    table = torch.arange(5, device="cuda")  # [5] slots of the row: the shared table
    other = torch.arange(5, 10, device="cuda")  # the row given to somebody else
    h = torch.zeros(2048, 2048, device="cuda")
    forward, schedule = torch.cuda.Stream(), torch.cuda.Stream()
    read_done = torch.cuda.Event(external=True)  # external: a node of the graph, armed anew by each replay

    def body() -> torch.Tensor:
        for _ in range(20):
            torch.mm(h, h, out=h)  # what the forward does before it reads
        rows = kv[table]  # the last shared read
        if torch.cuda.is_current_stream_capturing():
            read_done.record()
        for _ in range(60):
            torch.mm(h, h, out=h)  # the layers
        return rows + h[0, :5].long()

    with torch.cuda.stream(forward):
        body()  # warm-up: nothing may be initialised while a graph is captured
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=forward):
        text = body()

    for fence in ("none", "whole forward", "the ticket"):
        table.copy_(torch.arange(5, device="cuda"))
        begin, landed, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        torch.cuda.synchronize()
        with torch.cuda.stream(forward):
            begin.record()
            graph.replay()
            end.record()
        with torch.cuda.stream(schedule):
            if fence == "whole forward":
                schedule.wait_stream(forward)
            elif fence == "the ticket":
                schedule.wait_event(read_done)  # behind the replay: called before it, it would pass on an older record
            table.copy_(other)
            landed.record()
        torch.cuda.synchronize()
        said = "".join(map(chr, text.tolist()))
        print(
            f"{fence:<14} write at {begin.elapsed_time(landed):.3f} of {begin.elapsed_time(end):.3f} ms: the cat {said}"
        )


if __name__ == "__main__":
    main()
