"""The laws, 1 to 16. Each is a function that holds a backend to one sentence; none needs pytest."""

from __future__ import annotations

from warfence.parity.laws import declared, holding, observing, tickets
from warfence.parity.laws.base import Bench, Law, LawBroken

GATES, MARKERS = "gates", "external_markers"

LAWS: tuple[Law, ...] = (
    Law(
        "1-no-write-before-reads",
        "No shared write executes before every shared read of every earlier launch has finished.",
        "sgl-project/sglang #26376, #26380", holding.no_write_before_earlier_reads, (GATES,),
    ),
    Law(
        "2-release-at-boundary",
        "Release is never before the read boundary, and with a fine ticket not after it.",
        "sgl-project/sglang #33587", holding.released_at_the_boundary, (GATES,),
    ),
    Law(
        "3-nothing-is-coarse",
        "Nothing published means coarse, and forcing coarse always works.",
        "sgl-project/sglang #26380", holding.nothing_published_is_coarse, (GATES,),
    ),
    Law(
        "4-one-launch",
        "A ticket belongs to one launch: stale, foreign and never-recorded tickets are refused.",
        "sgl-project/sglang #30435, NVIDIA/cudnn-frontend #801", tickets.a_ticket_belongs_to_one_launch,
    ),
    Law(
        "5-after-its-launch",
        "An in-graph ticket is handed over only after its own launch was issued.",
        "device events: a wait takes the event's state at the time of the call", tickets.in_graph_tickets_come_after_their_launch,
        (GATES, MARKERS),
    ),
    Law(
        "6-barrier-after-launch",
        "The barrier stands right after each launch, before any later schedule write; the plan lane inherits it.",
        "sgl-project/sglang #31687, #28034", tickets.the_barrier_stands_right_after_each_launch, (GATES,),
    ),
    Law(
        "7-mailbox-emptied",
        "Every barrier empties the mailbox of the last reading runner, and uses no other.",
        "sgl-project/sglang #29353, #35057", tickets.every_barrier_empties_the_mailbox,
    ),
    Law(
        "8-degrade-later",
        "A declared in-graph boundary without its marker degrades later, per captured forward.",
        "sgl-project/sglang #33587, #34916", holding.missing_marker_degrades_later, (GATES,),
    ),
    Law(
        "9-latest-child",
        "A composite answers with the latest of its children; unknown is the latest of all.",
        "sgl-project/sglang #34982", declared.composites_answer_the_latest,
    ),
    Law(
        "10-snapshot-once",
        "Snapshot once, use the snapshot, and fail loudly when it is missing.",
        "sgl-project/sglang #32460", holding.snapshot_once_and_use_it, (GATES,),
    ),
    Law(
        "11-failure-no-ticket",
        "A failure between load_batch and the end of the replay leaves no ticket behind.",
        "sgl-project/sglang #35947", tickets.a_failure_leaves_no_ticket,
    ),
    Law(
        "12-host-staging",
        "Host staging memory is a shared table too.",
        "vllm-project/vllm #25279, NVIDIA/TensorRT-LLM #15546", declared.staging_memory_is_a_shared_table, (GATES,),
    ),
    Law(
        "13-writes-are-separate",
        "Read-done says nothing about writes of the forward: relay, KV and read-after-write edges are separate.",
        "sgl-project/sglang #20611", holding.read_done_says_nothing_of_writes, (GATES,),
    ),
    Law(
        "14-capabilities-kept",
        "What a backend cannot do it says in its capabilities, and what it says it can do it does.",
        "data-apis/array-api-tests", declared.capabilities_are_kept,
    ),
    Law(
        "15-tokens",
        "Tokens do not depend on the fence: overlapped, serial and numpy reference are equal.",
        "sgl-project/sglang #31686", declared.tokens_do_not_depend_on_the_fence,
    ),
    Law(
        "16-observers-change-nothing",
        "An observer changes nothing: a backend that is timed and traced does what it does when it is left alone.",
        "warfence: proxies that hid what the backend inside could do", observing.observers_change_nothing, (GATES,),
    ),
)  # fmt: skip

__all__ = ["LAWS", "Bench", "Law", "LawBroken"]
