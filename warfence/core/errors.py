"""The errors of warfence. Each message says what was seen, what is allowed and what to do."""


class WarfenceError(Exception):
    """Base of every error that warfence raises on purpose."""


class InputError(WarfenceError):
    """The user's input cannot be served. The command line prints it in one line and exits with 2."""


class FenceError(WarfenceError):
    """The fence protocol was broken: a stale, foreign or never-recorded ticket, a second publisher, a full mailbox."""


class CapacityError(WarfenceError):
    """A pool has no free row or slot left; the scheduler retracts or waits."""


class DeadHandleError(WarfenceError):
    """A table handle was used after the runtime had given its memory to a later write."""


class StageError(WarfenceError):
    """A stage of a launch raised. Carries the launch number and the stage name; the cause is chained."""

    def __init__(self, launch: int, stage: str, cause: BaseException) -> None:
        self.launch = launch
        self.stage = stage
        super().__init__(f"launch {launch}, stage '{stage}': {type(cause).__name__}: {cause}")
        self.__cause__ = cause
