"""The exceptions of `torch.multiprocessing`, with the names and fields of PyTorch's."""


class ProcessException(Exception):  # noqa: N818 - the name is PyTorch's
    """A process of a spawned run failed. Fields: message, index of the process (its first rank),
    pid.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg, error_index, pid)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    @property
    def error_pid(self) -> int:
        """The pid, with its name in newer releases of PyTorch."""
        return self.pid

    def __str__(self) -> str:
        return self.msg


class ProcessRaisedException(ProcessException):
    """A rank raised an exception; the message contains its traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process exited or was killed. More fields: exit code (negative after a signal), name of the
    signal.
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.args = (msg, error_index, error_pid, exit_code, signal_name)
        self.exit_code, self.signal_name = exit_code, signal_name
