"""One proxy of a backend, and what observes through it: the event log, and the times of a timeline."""

from warfence.show.observe.log import EventLog, unseen
from warfence.show.observe.observer import Call, Observer
from warfence.show.observe.proxy import Observed
from warfence.show.observe.times import Tracer

__all__ = ["Call", "EventLog", "Observed", "Observer", "Tracer", "unseen"]
