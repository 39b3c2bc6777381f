"""What a run leaves out of a backend that compiles for seconds, unless WARFENCE_THOROUGH=1 or the backend was named.

The part that is left out is about the neutral code, which the other backends run, or about attention kinds that differ
for this backend in nothing that the kept ones do not show. `warfence parity --mutants` measures all of it, always.
"""

from __future__ import annotations

import os
import re

from warfence.backends import package

THOROUGH = "WARFENCE_THOROUGH"
REASON = f"compiles for seconds, and shows here what the kept cases show; {THOROUGH}=1 runs it"
# test -> what its parameters must match to be kept
KEPT = {
    "test_law_holds": r"^(?!.*15-tokens)",  # test_tokens.py serves the same on more engines
    "test_random_loops_give_the_tokens_of_the_reference": r"never",
    "test_mutant_is_caught_by_its_law": r"marker-one-stage|plan-lane-alone|claims-last-reader",
    "test_tokens_do_not_depend_on_the_fence": r"snapshot|captured|live|segmented",
    "test_text_survives_the_worst_order": r"first-live|last-captured",
    "test_tokens_are_those_of_plain_decoding": r"eagle",
    "test_text_survives_the_worst_order_and_not_without_a_fence": r"dflash",
    "test_mixed_and_idle_batches_wait_coarsely": r"mixed",
    "test_no_fence_corrupts_every_time": r"live",
    "test_a_ticket_one_stage_too_early_corrupts": r"live",
    "test_a_historical_set_releases_before_the_boundary": r"33587",
    "test_a_write_lands_where_the_rules_put_it": (
        r"^(?!.*(rereading|unknown|composite|hybrid)).*$|decode / (rereading|composite)|switch / hybrid"
    ),
}


def compiles(target: tuple[str, str]) -> bool:
    """Whether that backend compiles for seconds; on a GPU there are few other tests, and nothing is left out."""
    return target[1] == "cpu" and package(target[0]).compiles


def left_out(name: str, target: tuple[str, str], named: bool) -> str | None:
    """Why a test is left out; None when it runs. name: with its parameters. named: the user asked for this backend."""
    test, _, parameters = name.partition("[")
    if named or os.environ.get(THOROUGH) == "1" or test not in KEPT or not compiles(target):
        return None
    return None if re.search(KEPT[test], parameters) else REASON
