"""torch._dynamo.exc: errors of PyTorch's compiler, for programs that catch them."""
__all__ = ["BackendCompilerFailed", "ConstraintViolationError", "InternalTorchDynamoError", "InvalidBackend",
           "TorchDynamoException", "TorchRuntimeError", "Unsupported", "UserError"]


class TorchDynamoException(RuntimeError):
    """Compiling a function failed."""


class InvalidBackend(TorchDynamoException):
    """There is no compiler of that name."""


class Unsupported(TorchDynamoException):
    """A function cannot be compiled."""


class BackendCompilerFailed(TorchDynamoException):
    """The compiler failed."""


class InternalTorchDynamoError(TorchDynamoException):
    """The compiler is at fault."""


class TorchRuntimeError(TorchDynamoException):
    """An operator failed while a function was compiled."""


class ConstraintViolationError(RuntimeError):
    """A size that `mark_dynamic` says to vary is fixed by the function."""


class UserError(Unsupported):
    """The function is at fault."""
