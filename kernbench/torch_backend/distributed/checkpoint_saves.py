"""`torch.distributed.checkpoint.async_save`: PyTorch saves in a thread, which has no device here.

The call saves before it returns, with the same files. Only copies from the device and collectives
take simulated time in a save, and they are those of `save`.
"""

from collections.abc import Callable
from concurrent.futures import Future
from types import ModuleType
from typing import Any

from kernbench.torch_backend.runtime.late_patches import patch_when_imported
from kernbench.torch_backend.runtime.pytorch_api import replace


def register_saves() -> None:
    """Replace the function when its module is imported."""
    patch_when_imported("torch.distributed.checkpoint.state_dict_saver", _patch)


def _patch(module: ModuleType) -> None:
    def saving(_: Callable[..., Any]) -> Callable[..., Any]:
        def async_save(
            state_dict: Any,
            *,
            async_checkpointer_type: object = None,
            async_stager: Any = None,
            storage_writer: Any = None,
            **options: Any,
        ) -> Any:
            """A complete future, or the two of a stager that has one of its own."""
            del async_checkpointer_type
            stager, is_response = async_stager, False
            if stager is None and isinstance(storage_writer, module.AsyncStager):
                stager = storage_writer
            if stager is not None:
                state_dict = stager.stage(state_dict)
                is_response = isinstance(state_dict, Future)
                state_dict = state_dict.result() if is_response else state_dict
            saved = _completed(module.save, state_dict, storage_writer=storage_writer, **options)
            if not is_response:
                return saved
            staged = _completed(lambda: None)
            return module.AsyncSaveResponse(staging_completion=staged, upload_completion=saved)

        return async_save

    replace(module, "async_save", saving)


def _completed(function: Callable[..., Any], *given: Any, **options: Any) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(function(*given, **options))
    # The caller of `result` gets it, as it gets that of the thread. Errors of several ranks are no
    # `Exception`; the end of the rank's own program is another one.
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "CheckpointException":
            raise
        future.set_exception(error)
    return future
